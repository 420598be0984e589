import type { Lease } from '../../kernel/lease.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { claim, type Worker } from '../../platform/postgres/work.ts';
import type { Claimed, ClaimedJob, ClaimOptions, LowWater } from '../usecase/ports.ts';
import { jobs } from './jobs-table.ts';

type ClaimedRow = Readonly<{
  job_id: string;
  /** JSON text; null where it is left in the database. */
  payload: string | null;
  retry_count: number;
  max_retries: number;
  deferrals: number;
  trace: string | null;
  /** Of the last one only. */
  mark: string | null;
}>;

/** It took its worker down, and has one attempt left. */
export const isLast = sql`t.lease_lost AND t.retry_count + 1 >= t.max_retries`;

/** As it is stored; what is compressed may be a hundred times as long. */
const shortBytes = 8192;
const isShort = sql`pg_column_size(t.payload) <= ${shortBytes} AND pg_column_compression(t.payload) IS NULL`;

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
  const isText = options.payloadAs === 'text';
  const payload = isText
    ? sql`t.payload::text AS payload`
    : sql`CASE WHEN ${isShort} THEN t.payload::text END AS payload`;
  const runsNow = options.lane === 'alone' ? isLast : sql`NOT (${isLast})`;
  const { lease, rows } = await claim<ClaimedRow>(worker, jobs, {
    where: sql`t.queue = ${options.queue} AND t.status IN ('pending', 'failed') AND t.sort_at <= now() AND ${runsNow}
      ${afterMark(options.after)} ${isOpen}`,
    orderBy: sql`t.sort_at, t.job_id`,
    limit: options.limit,
    leaseMs: options.leaseMs,
    set: sql`status = 'running', started_at = clock_timestamp()`,
    returning: sql`t.job_id, ${payload}, t.retry_count, t.max_retries, t.deferrals, t.trace, t.sort_at`,
    select: sql`job_id, payload, retry_count, max_retries, deferrals, trace, claim_epoch,
      CASE WHEN job_id = (SELECT c.job_id FROM claimed c ORDER BY c.sort_at DESC, c.job_id DESC LIMIT 1)
           THEN sort_at::text END AS mark`,
    rowOrder: sql`sort_at, job_id`,
    isPrepared: options.isQuick === true,
  });
  const last = rows.at(-1);
  return {
    jobs: rows.map((row) => claimedJob(row, { queue: options.queue, lease, isText })),
    last: last === undefined || last.mark === null ? null : { sortAt: last.mark, jobId: last.job_id },
  };
}

function afterMark(after: LowWater | null): Sql {
  return after === null
    ? sql``
    : sql`AND (t.sort_at, t.job_id) > (${after.sortAt}::timestamptz, ${after.jobId}::uuid)`;
}

function claimedJob(
  row: ClaimedRow,
  { queue, lease, isText }: Readonly<{ queue: string; lease: Lease; isText: boolean }>,
): ClaimedJob {
  return {
    jobId: row.job_id,
    queue,
    payload: isText || row.payload === null ? row.payload : JSON.parse(row.payload),
    isPayloadApart: row.payload === null,
    retryCount: row.retry_count,
    maxRetries: row.max_retries,
    deferrals: row.deferrals,
    trace: row.trace,
    lease,
  };
}
