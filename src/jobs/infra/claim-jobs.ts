import type { Lease } from '../../kernel/lease.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { claim, type Worker } from '../../platform/postgres/work.ts';
import type { Claimed, ClaimedJob, ClaimOptions, LowWater } from '../usecase/ports.ts';
import { jobs } from './jobs-table.ts';

type ClaimedRow = Readonly<{
  job_id: string;
  payload: unknown;
  retry_count: number;
  max_retries: number;
  deferrals: number;
  trace: string | null;
  place: string;
}>;

/** It took its worker down, and has one attempt left. */
export const isLast = sql`t.lease_lost AND t.retry_count + 1 >= t.max_retries`;

/**
 * Claims without a lock. A queue whose claims are counted over all processes gives nothing this way: whoever has not
 * heard of its limits yet claims nothing until it has, rather than too much.
 */
export function claimFree(worker: Worker, options: ClaimOptions): Promise<Claimed> {
  const isOpen = sql`
      AND NOT EXISTS (
        SELECT 1 FROM jobs.queues q
        WHERE q.queue = ${options.queue}
          AND (q.paused OR q.max_running IS NOT NULL OR q.rate_count IS NOT NULL OR q.throttle IS NOT NULL))`;
  return claimJobs(worker, options, isOpen);
}

/** `isOpen`: what else must hold for the queue, beginning with AND. */
export async function claimJobs(
  worker: Worker,
  options: ClaimOptions,
  isOpen: Sql = sql``,
): Promise<Claimed> {
  const payload = options.payloadAs === 'text' ? sql`t.payload::text AS payload` : sql`t.payload`;
  const runsNow = options.lane === 'alone' ? isLast : sql`NOT (${isLast})`;
  const { lease, rows } = await claim<ClaimedRow>(worker, jobs, {
    where: sql`t.queue = ${options.queue} AND t.status IN ('pending', 'failed') AND t.sort_at <= now() AND ${runsNow}
      ${afterMark(options.after)} ${isOpen}`,
    orderBy: sql`t.sort_at, t.job_id`,
    limit: options.limit,
    leaseMs: options.leaseMs,
    set: sql`status = 'running', started_at = clock_timestamp()`,
    returning: sql`t.job_id, ${payload}, t.retry_count, t.max_retries, t.deferrals, t.trace,
      t.sort_at::text AS place`,
    rowOrder: sql`place COLLATE "C", job_id`,
  });
  const last = rows.at(-1);
  return {
    jobs: rows.map((row) => claimedJob(row, options.queue, lease)),
    last: last === undefined ? null : { sortAt: last.place, jobId: last.job_id },
  };
}

function afterMark(after: LowWater | null): Sql {
  return after === null
    ? sql``
    : sql`AND (t.sort_at, t.job_id) > (${after.sortAt}::timestamptz, ${after.jobId}::uuid)`;
}

function claimedJob(row: ClaimedRow, queue: string, lease: Lease): ClaimedJob {
  return {
    jobId: row.job_id,
    queue,
    payload: row.payload,
    retryCount: row.retry_count,
    maxRetries: row.max_retries,
    deferrals: row.deferrals,
    trace: row.trace,
    lease,
  };
}
