import type { Pool } from 'pg';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import type { Phase } from './decide-guarded-call.ts';
import { askerOf, withClient } from './guard-transaction.ts';

/** What ended without an effect, or undone, is only kept for calls that come late; none comes as late as this. */
const LATE_CALLS_MS = 7 * 86_400_000;
/** The saga's clock tells whether a row may be gone, ours when it goes. */
const CLOCKS_DIFFER_MS = 86_400_000;
const BATCH = 1000;
const MAX_BATCHES = 10_000;

const passed: readonly Phase[] = ['void', 'undone', 'refused'];
const lasting: readonly Phase[] = ['done', 'working'];

/** Deletes what is old enough, in short transactions that wait for nobody; answers how many rows went. */
export async function cleanUpGuard(pool: Pool, table: Sql, retentionMs: number): Promise<number> {
  return (
    (await deleteOld(pool, table, passed, LATE_CALLS_MS)) +
    (await deleteOld(pool, table, lasting, retentionMs + CLOCKS_DIFFER_MS))
  );
}

async function deleteOld(pool: Pool, table: Sql, phases: readonly Phase[], ageMs: number): Promise<number> {
  let deleted = 0;
  for (let batch = 0; batch < MAX_BATCHES; batch += 1) {
    const count = await withClient(pool, async (client) => {
      const rows = await askerOf(client)(sql`
        DELETE FROM ${table} t
        USING (
          SELECT saga_id, step FROM ${table}
          WHERE phase = ANY(${phases}::text[])
            AND settled_at < clock_timestamp() - ${ageMs}::float8 * interval '1 millisecond'
          LIMIT ${BATCH}
          FOR UPDATE SKIP LOCKED
        ) AS old
        WHERE t.saga_id = old.saga_id AND t.step = old.step
        RETURNING t.phase`);
      return rows.length;
    });
    deleted += count;
    if (count < BATCH) break;
  }
  return deleted;
}
