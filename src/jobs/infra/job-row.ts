import { sql, type Sql } from '../../platform/postgres/sql.ts';
import type { Resolution, Status } from '../domain/job.ts';
import type { Job } from '../usecase/reading-ports.ts';

/** A list leaves larger texts out, so that a page of them cannot grow to a hundred megabytes. */
const listedBytes = 16_384;

/** Of the row `t`. */
export const jobColumns: Sql = sql`
  t.job_id, t.queue, t.status, t.retry_count, t.max_retries, t.error_message, t.dedupe_key, t.priority, t.run_at,
  t.created_at, t.started_at, t.completed_at, t.resolution, t.deferrals, t.trace, t.lease_owner, t.lease_until,
  t.lease_epoch`;

export const wholeTexts: Sql = sql`
  t.payload::text AS payload_text, t.result::text AS result_text, t.progress::text AS progress_text`;

/** As long as they are when they are shown; the size of a column is what compression has made of it. */
export const listedTexts: Sql = sql`
  ${listed(sql`t.payload::text`)} AS payload_text, ${listed(sql`t.result::text`)} AS result_text,
  ${listed(sql`t.progress::text`)} AS progress_text`;

function listed(text: Sql): Sql {
  return sql`CASE WHEN octet_length(${text}) <= ${listedBytes} THEN ${text} END`;
}

export type JobRow = Readonly<{
  job_id: string;
  queue: string;
  status: Status;
  retry_count: number;
  max_retries: number;
  error_message: string | null;
  dedupe_key: string | null;
  priority: number;
  run_at: Date;
  created_at: Date;
  started_at: Date | null;
  completed_at: Date | null;
  resolution: Resolution | null;
  deferrals: number;
  trace: string | null;
  lease_owner: string | null;
  lease_until: Date | null;
  lease_epoch: bigint;
  payload_text: string | null;
  result_text: string | null;
  progress_text: string | null;
}>;

export function jobOf(row: JobRow): Job {
  return {
    jobId: row.job_id,
    queue: row.queue,
    payloadText: row.payload_text,
    status: row.status,
    retryCount: row.retry_count,
    maxRetries: row.max_retries,
    errorMessage: row.error_message,
    resultText: row.result_text,
    dedupeKey: row.dedupe_key,
    priority: row.priority,
    runAt: row.run_at,
    createdAt: row.created_at,
    startedAt: row.started_at,
    completedAt: row.completed_at,
    resolution: row.resolution,
    deferrals: row.deferrals,
    progressText: row.progress_text,
    trace: row.trace,
    leaseOwner: row.lease_owner,
    leaseUntil: row.lease_until,
    leaseEpoch: row.lease_epoch,
  };
}
