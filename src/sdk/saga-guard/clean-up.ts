import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { deleteTask, runTasks } from '../../platform/work/retention-tasks.ts';
import type { PostgresPool } from '../postgres-pool.ts';
import type { Phase } from './decide-guarded-call.ts';
import { withClient } from '../with-client.ts';
import { askerOf } from './guard-transaction.ts';

/** Calls without an effect, or undone ones, are kept only to recognise late calls; none is later than this. */
const LATE_CALLS_MS = 7 * 86_400_000;
/** The start of the saga decides whether a row may be deleted, the local clock when. */
const CLOCKS_DIFFER_MS = 86_400_000;
const BATCH = 1000;

const withoutEffect: readonly Phase[] = ['void', 'undone', 'refused'];
const lasting: readonly Phase[] = ['done', 'working'];

/** Deletes expired rows in short transactions that skip locked rows; returns how many it deleted. */
export async function cleanUpGuard(pool: PostgresPool, table: Sql, retentionMs: number): Promise<number> {
  const expired = (name: string, phases: readonly Phase[], ageMs: number) =>
    deleteTask({ name, count: 'deleted', batchSize: BATCH }, (limit) =>
      deleteBatch(pool, table, { phases, ageMs, limit }),
    );
  const { deleted = 0 } = await runTasks(
    [
      expired('calls without effect', withoutEffect, LATE_CALLS_MS),
      expired('lasting calls', lasting, retentionMs + CLOCKS_DIFFER_MS),
    ],
    new AbortController().signal,
  );
  return deleted;
}

async function deleteBatch(
  pool: PostgresPool,
  table: Sql,
  { phases, ageMs, limit }: Readonly<{ phases: readonly Phase[]; ageMs: number; limit: number }>,
): Promise<number> {
  return withClient(
    () => pool.connect(),
    async (client) => {
      const rows = await askerOf(client)(sql`
      DELETE FROM ${table} t
      USING (
        SELECT saga_id, step FROM ${table}
        WHERE phase = ANY(${phases}::text[])
          AND settled_at < clock_timestamp() - ${ageMs}::float8 * interval '1 millisecond'
        LIMIT ${limit}
        FOR UPDATE SKIP LOCKED
      ) AS old
      WHERE t.saga_id = old.saga_id AND t.step = old.step
      RETURNING t.phase`);
      return rows.length;
    },
  );
}
