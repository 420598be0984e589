import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { joinSql, sql } from '../../platform/postgres/sql.ts';
import type { Metrics } from '../../platform/telemetry/metrics.ts';
import type { Gauges } from '../../platform/work/gauges.ts';
import { hasStatus } from '../saga-table.ts';

export type SagaGaugesOptions = Readonly<{
  db: Database;
  /** Of a status at most this many are counted. */
  countedRows?: number;
  /** Steps in doubt are searched in this many sagas that need attention, and in as many that run. */
  measuredRows?: number;
}>;

const activeStatuses = ['STARTED', 'RUNNING', 'COMPENSATING'] as const;

/** Ended sagas are not counted: that would need a scan of all rows. */
export function sagaGauges(
  metrics: Metrics,
  { db, countedRows = 100_000, measuredRows = 5000 }: SagaGaugesOptions,
): Gauges {
  const active = metrics.gauge({
    name: 'saga_active',
    help: `Sagas that have not ended, of each status at most ${countedRows}; exported by one replica.`,
    labelNames: ['status'],
  });
  const needsAttention = metrics.gauge({
    name: 'saga_needs_attention',
    help: `Sagas that need attention, at most ${countedRows}; exported by one replica.`,
  });
  const stuckUndos = metrics.gauge({
    name: 'saga_compensations_stuck',
    help: `Sagas among these that are being undone, at most ${countedRows}; exported by one replica.`,
  });
  const inDoubt = metrics.gauge({
    name: 'saga_in_doubt_seconds',
    help: 'How long the outcome of a step has been unknown at most, 0 if all are known; exported by one replica.',
  });
  const inDoubtSince = metrics.gauge({
    name: 'saga_in_doubt_since_timestamp_seconds',
    help: 'Since when the outcome of that step has been unknown; absent if all are known; exported by one replica.',
  });
  return {
    gauges: [active, needsAttention, stuckUndos, inDoubt, inDoubtSince],
    async measure() {
      const { counts, waiting, doubtSeconds } = await measure(db, { countedRows, measuredRows });
      return () => {
        for (const status of activeStatuses) active.set({ status }, counts.get(status) ?? 0);
        needsAttention.set(waiting.all);
        stuckUndos.set(waiting.compensating);
        inDoubt.set(doubtSeconds);
        if (doubtSeconds > 0) inDoubtSince.set(Date.now() / 1000 - doubtSeconds);
      };
    },
  };
}

/** By indexes: most of the table are ended sagas, which are not read. */
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

type Waiting = Readonly<{ all: number; compensating: number }>;

async function countNeedingPerson(db: Queryable, countedRows: number): Promise<Waiting> {
  const [row] = await db.query<Waiting>(sql`
    SELECT count(*)::int AS all, count(*) FILTER (WHERE status = 'COMPENSATING')::int AS compensating
    FROM (SELECT status FROM saga.saga_states WHERE needs_attention LIMIT ${countedRows}) AS found`);
  return row ?? { all: 0, compensating: 0 };
}

/**
 * A step is in doubt from its first attempt with an unknown outcome until it is known to be done or not done, is
 * compensated, or is skipped by an operator. Sagas that need attention have been in doubt for longest, and the oldest
 * of them come first. LATERAL reads the log of each saga: a join might start with all logs.
 */
async function measureDoubt(db: Queryable, measuredRows: number): Promise<number> {
  const [row] = await db.query<{ seconds: number | null }>(sql`
    WITH looked_at AS MATERIALIZED (
      (SELECT id FROM saga.saga_states WHERE needs_attention ORDER BY created_at, id DESC LIMIT ${measuredRows})
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
