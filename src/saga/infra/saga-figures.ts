import { sleep } from '../../kernel/clock.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { joinSql, sql } from '../../platform/postgres/sql.ts';
import type { Metrics } from '../../platform/telemetry/metrics.ts';
import { hasStatus } from './saga-rows.ts';

/**
 * Figures about the database are the same in every replica, so only the holder of the lease exports them: two
 * replicas would double every sum. What has ended is not counted: nothing but all its rows would tell.
 */
export type SagaFigures = Readonly<{ export(held: AbortSignal): Promise<void> }>;

export type SagaFiguresOptions = Readonly<{
  db: Database;
  everyMs?: number;
  /** So many of a status stand for as many or more. */
  countedRows?: number;
  /** Doubt is looked for in so many of those that wait for a person, and in as many of those that run. */
  measuredRows?: number;
}>;

/** A round that is dear comes less often: at most this share of the time is spent on it. */
const share = 0.05;
const activeStatuses = ['STARTED', 'RUNNING', 'COMPENSATING'] as const;

export function createSagaFigures(
  metrics: Metrics,
  { db, everyMs = 5000, countedRows = 100_000, measuredRows = 5000 }: SagaFiguresOptions,
): SagaFigures {
  const active = metrics.gauge({
    name: 'saga_active',
    help: `Sagas that have not ended, of each status at most ${countedRows}; exported by one replica.`,
    labelNames: ['status'],
  });
  const needsPerson = metrics.gauge({
    name: 'saga_needs_person',
    help: `Sagas that wait for a person, at most ${countedRows}; exported by one replica.`,
  });
  const inDoubt = metrics.gauge({
    name: 'saga_in_doubt_seconds',
    help: 'For how long nobody has known of some step whether it was done, 0 where there is none; exported by one replica.',
  });
  const clear = (): void => {
    active.reset();
    // Without labels a reset leaves a zero, which a sum over the replicas would bear and an average would not.
    needsPerson.remove();
    inDoubt.remove();
  };
  clear();

  const refresh = async (): Promise<void> => {
    const { counts, waiting, doubtSeconds } = await measure(db, { countedRows, measuredRows });
    // From here on without a pause, so that nobody reads half of a round.
    clear();
    for (const status of activeStatuses) active.set({ status }, counts.get(status) ?? 0);
    needsPerson.set(waiting);
    inDoubt.set(doubtSeconds);
  };

  return {
    async export(held) {
      try {
        while (!held.aborted) {
          const begin = performance.now();
          await refresh();
          await sleep(Math.max(everyMs, (performance.now() - begin) / share), held);
        }
      } finally {
        clear();
      }
    },
  };
}

/** By indexes: what has ended is most of the table, and nothing of it is looked at. */
async function measure(
  db: Database,
  { countedRows, measuredRows }: Readonly<{ countedRows: number; measuredRows: number }>,
) {
  return db.transaction(async (tx) => {
    await tx.query(sql`SET LOCAL enable_seqscan = off`);
    return {
      counts: await countActive(tx, countedRows),
      waiting: await countNeedingPerson(tx, countedRows),
      doubtSeconds: await measureDoubt(tx, measuredRows),
    };
  });
}

async function countActive(db: Queryable, countedRows: number): Promise<ReadonlyMap<string, number>> {
  const counts = activeStatuses.map(
    (status) => sql`
    SELECT ${status}::text AS status, count(*)::int AS count
    FROM (SELECT 1 FROM saga.saga_states t WHERE ${hasStatus(status)} LIMIT ${countedRows}) AS found`,
  );
  const rows = await db.query<{ status: string; count: number }>(joinSql(counts, sql` UNION ALL `));
  return new Map(rows.map(({ status, count }) => [status, count]));
}

async function countNeedingPerson(db: Queryable, countedRows: number): Promise<number> {
  const [row] = await db.query<{ count: number }>(sql`
    SELECT count(*)::int AS count
    FROM (SELECT 1 FROM saga.saga_states WHERE needs_person LIMIT ${countedRows}) AS found`);
  return row?.count ?? 0;
}

/**
 * A step is in doubt from the end of its first attempt whose end nobody knows, until it is known to be done or not
 * done, is undone, or a person has said to go on without it. Those that wait for a person have been in doubt for
 * longest, and the oldest of them come first. Each saga is asked for by itself: a join might begin with all logs.
 */
async function measureDoubt(db: Queryable, measuredRows: number): Promise<number> {
  const [row] = await db.query<{ seconds: number | null }>(sql`
    WITH looked_at AS MATERIALIZED (
      (SELECT id FROM saga.saga_states WHERE needs_person ORDER BY created_at, id DESC LIMIT ${measuredRows})
      UNION
      (SELECT id FROM saga.saga_states
       WHERE phase IN ('FORWARD', 'COMPENSATING') AND status <> 'STARTED' LIMIT ${measuredRows})
    )
    SELECT date_part('epoch', clock_timestamp() - min(doubt.since)) AS seconds
    FROM looked_at
    CROSS JOIN LATERAL (
      SELECT min(unknown.completed_at) AS since
      FROM saga.saga_step_logs unknown
      WHERE unknown.saga_id = looked_at.id AND unknown.action = 'EXECUTE'
        AND unknown.answer = 'unknown' AND NOT unknown.is_unsent
        AND NOT EXISTS (
          SELECT 1 FROM saga.saga_step_logs known
          WHERE known.saga_id = unknown.saga_id AND known.step_index = unknown.step_index
            AND (known.status IN ('SUCCESS', 'SKIPPED') OR known.answer = 'not_done'))
    ) AS doubt`);
  return Math.max(0, row?.seconds ?? 0);
}
