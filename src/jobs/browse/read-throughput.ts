import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';

/** Completed jobs per minute of the last half hour, the oldest minute first. */
export type Throughput = Readonly<{
  byQueue: ReadonlyMap<string, readonly number[]>;
  /** Only the newest jobs were read: there were more. */
  isPartial: boolean;
}>;

/** The length of the chart. */
export const throughputMinutes = 30;
/** No index has the completed jobs, because each would pay for it: the newest jobs are read. */
const scanLimit = 25_000;

type Row = Readonly<{
  queue: string | null;
  minute: number | null;
  completed: bigint | null;
  is_partial: boolean;
}>;

/** Jobs of queues that keep no completed ones are not there to be counted. */
export async function readThroughput(db: Queryable): Promise<Throughput> {
  const rows = await db.query<Row>(sql`
    WITH newest AS MATERIALIZED (
      SELECT t.queue, t.status, t.completed_at, t.created_at
      FROM jobs.job_queue t ORDER BY t.job_id DESC LIMIT ${scanLimit + 1}
    ), counted AS (
      SELECT queue, floor(extract(epoch FROM clock_timestamp() - completed_at) / 60)::int AS minute,
             count(*) AS completed
      FROM newest
      WHERE status = 'completed' AND isfinite(completed_at)
        AND completed_at > clock_timestamp() - ${throughputMinutes}::int * interval '1 minute'
        AND completed_at <= clock_timestamp() + interval '1 minute'
      GROUP BY 1, 2
    ), whole AS (
      -- A job that was created long ago may complete now, but most of those that count are new.
      SELECT count(*) > ${scanLimit}
         AND min(created_at) > clock_timestamp() - ${throughputMinutes}::int * interval '1 minute' AS is_partial
      FROM newest
    )
    SELECT counted.queue, counted.minute, counted.completed, whole.is_partial
    FROM whole LEFT JOIN counted ON true`);
  const byQueue = new Map<string, number[]>();
  for (const { queue, minute, completed } of rows) {
    if (queue === null || minute === null) continue;
    const minutes = byQueue.get(queue) ?? Array.from({ length: throughputMinutes }, () => 0);
    const place = throughputMinutes - 1 - Math.min(Math.max(minute, 0), throughputMinutes - 1);
    minutes[place] = (minutes[place] ?? 0) + Number(completed ?? 0n);
    byQueue.set(queue, minutes);
  }
  return { byQueue, isPartial: rows[0]?.is_partial ?? false };
}
