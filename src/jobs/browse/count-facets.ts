import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { statuses, type Status } from '../domain/job.ts';
import { allOf, conditionsOf, type JobFilter } from './job-conditions.ts';
import { countJobs, filterColumns, type Count } from './list-jobs.ts';

export type StatusCount = Count & Readonly<{ status: Status }>;
export type QueueCount = Count & Readonly<{ queue: string }>;

export type Facets = Readonly<{
  total: Count;
  byStatus: readonly StatusCount[];
  byQueue: readonly QueueCount[];
}>;

/**
 * Counts what matches, status by status: each has an index of its own, or is estimated as the total of a list is. A
 * sample of the newest jobs would not do, because a busy queue completes thousands while one dead letter waits.
 */
export async function countFacets(db: Queryable, filter: JobFilter): Promise<Facets> {
  const counted = filter.status === undefined ? statuses : [filter.status];
  const byStatus: StatusCount[] = [];
  // One after the other: a list must not take all connections.
  for (const status of counted) byStatus.push({ status, ...(await countJobs(db, { ...filter, status })) });
  return {
    total: {
      total: byStatus.reduce((sum, { total }) => sum + total, 0),
      isEstimate: byStatus.some(({ isEstimate }) => isEstimate),
    },
    byStatus,
    byQueue: await countByQueue(db, filter),
  };
}

const scanLimit = 25_000;
const listedQueues = 20;

type QueueRow = Readonly<{ queue: string; found: bigint; is_partial: boolean }>;

/** To choose from: the queues of the newest jobs. Those that only older jobs have may be missing. */
async function countByQueue(db: Queryable, filter: JobFilter): Promise<readonly QueueCount[]> {
  const { scope, rest } = conditionsOf(filter);
  const rows = await db.query<QueueRow>(sql`
    WITH scanned AS MATERIALIZED (
      SELECT ${filterColumns} FROM jobs.job_queue t WHERE ${scope} ORDER BY t.job_id DESC LIMIT ${scanLimit + 1}
    )
    SELECT t.queue, count(*) AS found, (SELECT count(*) > ${scanLimit} FROM scanned) AS is_partial
    FROM scanned AS t WHERE ${allOf(rest)}
    GROUP BY t.queue ORDER BY found DESC, t.queue LIMIT ${listedQueues}`);
  return rows.map(({ queue, found, is_partial: isEstimate }) => ({
    queue,
    total: Number(found),
    isEstimate,
  }));
}
