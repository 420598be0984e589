import { sleep } from '../../kernel/clock.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { rowsOf } from '../../platform/postgres/rows-of.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import type { Metrics } from '../../platform/telemetry/metrics.ts';
import { createQueueLabels } from './queue-labels.ts';

/**
 * Figures about the database are the same in every replica, so only the holder of the lease exports them: two
 * replicas would double every sum. They hold for all workers, also for those in other processes. What has ended well
 * is not counted: nothing but all its rows would tell.
 */
export type JobFigures = Readonly<{ export(held: AbortSignal): Promise<void> }>;

export type JobFiguresOptions = Readonly<{
  db: Database;
  /** They are there with zeros, too. */
  queues: readonly string[];
  everyMs?: number;
  /** Of each queue: so many that wait, as many that run and as many that are dead stand for as many or more. */
  countedRows?: number;
}>;

/** A round that is dear comes less often: at most this share of the time is spent on it. */
const share = 0.05;
const maxQueues = 2000;
/** The longest wait is looked for among so many that are next: with priorities the first need not be it. */
const measuredRows = 1000;

export function createJobFigures(
  metrics: Metrics,
  { db, queues, everyMs = 5000, countedRows = 100_000 }: JobFiguresOptions,
): JobFigures {
  const depth = metrics.gauge({
    name: 'jobs_depth',
    help: `Jobs that are not over, and dead letters that nobody has dealt with. Of a queue at most ${countedRows} that wait, that run and that are dead are counted. Exported by one replica.`,
    labelNames: ['queue', 'status'],
  });
  const lag = metrics.gauge({
    name: 'jobs_lag_seconds',
    help: 'How long the job that has been due for longest waits, 0 where none is due; exported by one replica.',
    labelNames: ['queue'],
  });
  const clear = (): void => {
    depth.reset();
    lag.reset();
  };

  const refresh = async (): Promise<void> => {
    const figures = await measure(db, queues, countedRows);
    // From here on without a pause, so that nobody reads half of a round.
    clear();
    const labels = createQueueLabels(queues);
    const lags = new Map<string, number>();
    for (const row of figures) {
      const queue = labels.labelOf(row.queue);
      for (const status of counted) depth.inc({ queue, status }, row[status]);
      lags.set(queue, Math.max(lags.get(queue) ?? 0, row.lag));
    }
    for (const [queue, seconds] of lags) lag.set({ queue }, seconds);
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

/**
 * In the order of indexes only: a queue that has just been filled is small by the statistics, and would be read and
 * sorted as a whole.
 */
async function measure(
  db: Database,
  configured: readonly string[],
  countedRows: number,
): Promise<readonly QueueFigures[]> {
  return db.transaction(async (tx) => {
    await tx.query(sql`
      SELECT set_config(name, 'off', true)
      FROM unnest('{enable_seqscan,enable_bitmapscan,enable_sort}'::text[]) AS name`);
    return count(tx, await findQueues(tx, configured), countedRows);
  });
}

const isWaiting: Sql = sql`j.status IN ('pending', 'failed')`;
/** Nobody has waited since before they were there, whatever time they name. */
const dueSince: Sql = sql`GREATEST(j.run_at, j.created_at)`;
const isRunning: Sql = sql`j.status = 'running'`;
const isDead: Sql = sql`j.status = 'dead_letter' AND j.resolution IS NULL`;

/** One look at an index per queue finds them all, however long they are. */
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
type QueueFigures = Readonly<Record<(typeof counted)[number] | 'lag', number> & { queue: string }>;

/**
 * Each is counted in the order of the index that holds only what is counted: without an order the planner reads the
 * table instead, from its beginning, with everything that is completed. Of dead letters there is an index in the order
 * of their ids as well, which is that of one queue, too: a range of queues keeps the planner from it.
 */
async function count(
  tx: Queryable,
  queues: readonly string[],
  countedRows: number,
): Promise<readonly QueueFigures[]> {
  const told = rowsOf<string>(sql`told`, queues, [[sql`queue`, sql`text[]`, (queue) => queue]]);
  return tx.query<QueueFigures>(sql`
    SELECT told.queue, waiting.pending, waiting.failed, running.count AS running, dead.count AS dead_letter,
           COALESCE(GREATEST(date_part('epoch', now() - due.since), 0), 0) AS lag
    FROM ${told}
    CROSS JOIN LATERAL (
      SELECT count(*) FILTER (WHERE status = 'pending')::int AS pending,
             count(*) FILTER (WHERE status = 'failed')::int AS failed
      FROM (SELECT j.status FROM jobs.job_queue j WHERE j.queue = told.queue AND ${isWaiting}
            ORDER BY j.sort_at, j.job_id LIMIT ${countedRows}) AS counted
    ) AS waiting
    CROSS JOIN LATERAL (
      SELECT count(*)::int
      FROM (SELECT 1 FROM jobs.job_queue j WHERE j.queue = told.queue AND ${isRunning}
            ORDER BY j.queue LIMIT ${countedRows}) AS counted
    ) AS running
    CROSS JOIN LATERAL (
      SELECT count(*)::int
      FROM (SELECT 1 FROM jobs.job_queue j
            WHERE j.queue >= told.queue AND j.queue <= told.queue AND ${isDead}
            ORDER BY j.queue, j.job_id LIMIT ${countedRows}) AS counted
    ) AS dead
    CROSS JOIN LATERAL (
      SELECT min(since) AS since
      FROM (SELECT j.run_at, ${dueSince} AS since FROM jobs.job_queue j
            WHERE j.queue = told.queue AND ${isWaiting} AND j.sort_at <= now()
            ORDER BY j.sort_at, j.job_id LIMIT ${measuredRows}) AS next
      WHERE run_at <= now() AND isfinite(since)
    ) AS due`);
}
