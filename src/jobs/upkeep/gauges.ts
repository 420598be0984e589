import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { unnestRows } from '../../platform/postgres/unnest-rows.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { createBoundedLabels } from '../../platform/telemetry/bounded-labels.ts';
import type { Metrics } from '../../platform/telemetry/metrics.ts';
import type { Gauges } from '../../platform/work/gauges.ts';

export type JobGaugesOptions = Readonly<{
  db: Database;
  /** Configured queues are exported even when they are empty. */
  queues: readonly string[];
  /** Of each queue at most this many waiting, running and dead jobs are counted. */
  countedRows?: number;
}>;

const maxQueues = 2000;
/** The longest wait is searched among this many of the next jobs: with priorities it need not be that of the first. */
const measuredRows = 1000;

/** Completed jobs are not counted: that would need a scan of all rows. */
export function jobGauges(metrics: Metrics, { db, queues, countedRows = 100_000 }: JobGaugesOptions): Gauges {
  const depth = metrics.gauge({
    name: 'jobs_depth',
    help: `Jobs that have not ended, and dead letters without a resolution. Of a queue at most ${countedRows} waiting, running and dead jobs are counted. Exported by one replica.`,
    labelNames: ['queue', 'status'],
  });
  const lag = metrics.gauge({
    name: 'jobs_lag_seconds',
    help: 'How long the job that has been due for longest has waited, 0 if none is due or the queue is paused; exported by one replica.',
    labelNames: ['queue'],
  });
  const oldest = metrics.gauge({
    name: 'jobs_oldest_due_timestamp_seconds',
    help: 'Since when that job has been due; absent if none is or the queue is paused; exported by one replica.',
    labelNames: ['queue'],
  });
  return {
    gauges: [depth, lag, oldest],
    async measure() {
      const rows = await measure(db, queues, countedRows);
      return () => {
        const labels = createBoundedLabels({ known: queues });
        const lags = new Map<string, number>();
        for (const row of rows) {
          const queue = labels.labelOf(row.queue);
          for (const status of counted) depth.inc({ queue, status }, row[status]);
          lags.set(queue, Math.max(lags.get(queue) ?? 0, row.lag));
        }
        const nowSeconds = Date.now() / 1000;
        for (const [queue, seconds] of lags) {
          lag.set({ queue }, seconds);
          if (seconds > 0) oldest.set({ queue }, nowSeconds - seconds);
        }
      };
    },
  };
}

/**
 * In index order only: for a queue that was just filled, statistics are outdated, and the planner would read and sort
 * all of it.
 */
async function measure(
  db: Database,
  configured: readonly string[],
  countedRows: number,
): Promise<readonly QueueDepth[]> {
  return db.transaction(async (tx) => {
    await tx.query(sql`
      SELECT set_config(name, 'off', true)
      FROM unnest('{enable_seqscan,enable_bitmapscan,enable_sort}'::text[]) AS name`);
    return count(tx, await findQueues(tx, configured), countedRows);
  });
}

const isWaiting: Sql = sql`j.status IN ('pending', 'failed')`;
/** `run_at` may be before the creation, but a job cannot have waited for longer than it exists. */
const dueSince: Sql = sql`GREATEST(j.run_at, j.created_at)`;
const isRunning: Sql = sql`j.status = 'running'`;
const isDead: Sql = sql`j.status = 'dead_letter' AND j.resolution IS NULL`;

/** One index lookup per queue finds them all, however long the queues are. */
async function findQueues(tx: Queryable, configured: readonly string[]): Promise<readonly string[]> {
  const found = new Set(configured);
  for (const which of [isWaiting, isRunning, isDead]) {
    const rows = await tx.query<{ queue: string }>(sql`
      WITH RECURSIVE found AS (
        (SELECT j.queue, 1 AS n FROM jobs.job_queue j WHERE ${which} ORDER BY j.queue LIMIT 1)
        UNION ALL
        SELECT (SELECT j.queue FROM jobs.job_queue j
                WHERE ${which} AND j.queue > found.queue ORDER BY j.queue LIMIT 1), n + 1
        FROM found WHERE found.queue IS NOT NULL AND n < ${maxQueues}
      )
      SELECT queue FROM found WHERE queue IS NOT NULL`);
    for (const { queue } of rows) if (found.size < maxQueues) found.add(queue);
  }
  return [...found];
}

const counted = ['pending', 'failed', 'running', 'dead_letter'] as const;
type QueueDepth = Readonly<Record<(typeof counted)[number] | 'lag', number> & { queue: string }>;

/**
 * Each count reads in the order of the partial index that has just these rows: without ORDER BY the planner scans the
 * table, with all completed jobs. For dead letters there is a second index, by id alone, which has the same order
 * within one queue: the range condition on the queue keeps the planner from choosing it.
 */
async function count(
  tx: Queryable,
  queues: readonly string[],
  countedRows: number,
): Promise<readonly QueueDepth[]> {
  const wanted = unnestRows<string>(sql`wanted`, queues, [[sql`queue`, sql`text[]`, (queue) => queue]]);
  return tx.query<QueueDepth>(sql`
    SELECT wanted.queue, waiting.pending, waiting.failed, running.count AS running, dead.count AS dead_letter,
           COALESCE(GREATEST(date_part('epoch', now() - due.since), 0), 0) AS lag
    FROM ${wanted}
    LEFT JOIN jobs.queues AS settings ON settings.queue = wanted.queue
    CROSS JOIN LATERAL (
      SELECT count(*) FILTER (WHERE status = 'pending')::int AS pending,
             count(*) FILTER (WHERE status = 'failed')::int AS failed
      FROM (SELECT j.status FROM jobs.job_queue j WHERE j.queue = wanted.queue AND ${isWaiting}
            ORDER BY j.sort_at, j.job_id LIMIT ${countedRows}) AS counted
    ) AS waiting
    CROSS JOIN LATERAL (
      SELECT count(*)::int
      FROM (SELECT 1 FROM jobs.job_queue j WHERE j.queue = wanted.queue AND ${isRunning}
            ORDER BY j.queue LIMIT ${countedRows}) AS counted
    ) AS running
    CROSS JOIN LATERAL (
      SELECT count(*)::int
      FROM (SELECT 1 FROM jobs.job_queue j
            WHERE j.queue >= wanted.queue AND j.queue <= wanted.queue AND ${isDead}
            ORDER BY j.queue, j.job_id LIMIT ${countedRows}) AS counted
    ) AS dead
    CROSS JOIN LATERAL (
      SELECT min(since) AS since
      FROM (SELECT j.run_at, ${dueSince} AS since FROM jobs.job_queue j
            WHERE j.queue = wanted.queue AND ${isWaiting} AND j.sort_at <= now()
              AND settings.paused IS NOT TRUE
            ORDER BY j.sort_at, j.job_id LIMIT ${measuredRows}) AS next
      WHERE run_at <= now() AND isfinite(since)
    ) AS due`);
}
