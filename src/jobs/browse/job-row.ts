import { MAX_JSON_BYTES } from '../../kernel/json-extent.ts';
import { longestMatch } from '../../kernel/protect/protection.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import type { Resolution, Status } from '../domain/job.ts';

export type Job = Readonly<{
  jobId: string;
  queue: string;
  /** PostgreSQL's own JSON text; null if it is too large to show. */
  payloadText: string | null;
  status: Status;
  retryCount: number;
  maxRetries: number;
  errorMessage: string | null;
  fingerprint: string | null;
  /** JSON text; also null if it is too large to show. */
  resultText: string | null;
  dedupeKey: string | null;
  priority: number;
  runAt: Date;
  createdAt: Date;
  startedAt: Date | null;
  completedAt: Date | null;
  resolution: Resolution | null;
  deferrals: number;
  progressText: string | null;
  trace: string | null;
  createdBy: string | null;
  leaseOwner: string | null;
  leaseUntil: Date | null;
  leaseEpoch: bigint;
}>;

/** Lists omit larger values and cut longer errors, so that a page cannot grow to a hundred megabytes. */
const listedBytes = 16_384;
export const listedErrorLength = 2000;

/** Which JSON texts are read: they are most of a row. */
export type ShownTexts = Readonly<Record<'payload' | 'result' | 'progress', boolean>>;
export const everyText: ShownTexts = { payload: true, result: true, progress: true };

/** Of the row `t`. */
export const jobColumns: Sql = sql`
  t.job_id, t.queue, t.status, t.retry_count, t.max_retries, t.dedupe_key, t.priority, t.run_at,
  t.created_at, t.started_at, t.completed_at, t.resolution, t.deferrals, t.fingerprint, t.trace, t.created_by, t.lease_owner, t.lease_until,
  t.lease_epoch`;

/** Larger values exist only if they were stored before there was a limit. */
export const wholeTexts: Sql = sql`t.error_message, ${texts(MAX_JSON_BYTES)}`;

export function listedTexts(shows: ShownTexts): Sql {
  return sql`
  left(t.error_message, ${listedErrorLength + longestMatch}) AS error_message, ${texts(listedBytes, shows)}`;
}

/** Bytes of one job in a response. */
export const shownBytes: Sql = sql`(
  ${shownUpTo(sql`t.payload`)} + ${shownUpTo(sql`t.result`)} + ${shownUpTo(sql`t.progress`)})`;

/** The limit applies to the text: the column may be compressed, and its numbers are written out. */
function texts(maxBytes: number, shows = everyText): Sql {
  const text = (json: Sql, isShown: boolean): Sql =>
    isShown ? sql`CASE WHEN ${isWithin(json, maxBytes)} THEN ${json}::text END` : sql`NULL::text`;
  return sql`
  ${text(sql`t.payload`, shows.payload)} AS payload_text, ${text(sql`t.result`, shows.result)} AS result_text,
  ${text(sql`t.progress`, shows.progress)} AS progress_text`;
}

/** The uncompressed column takes up to six times its text. The first test avoids writing out a value to measure it. */
function isWithin(json: Sql, maxBytes: number): Sql {
  return sql`(pg_column_size(${json} || '{}') <= ${6 * maxBytes} AND platform.json_bytes(${json}) <= ${maxBytes})`;
}

function shownUpTo(json: Sql): Sql {
  return sql`LEAST(COALESCE(platform.json_bytes(${json}), 0), ${MAX_JSON_BYTES}::bigint)`;
}

export type JobRow = Readonly<{
  job_id: string;
  queue: string;
  status: Status;
  retry_count: number;
  max_retries: number;
  error_message: string | null;
  fingerprint: string | null;
  dedupe_key: string | null;
  priority: number;
  run_at: Date;
  created_at: Date;
  started_at: Date | null;
  completed_at: Date | null;
  resolution: Resolution | null;
  deferrals: number;
  trace: string | null;
  created_by: string | null;
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
    fingerprint: row.fingerprint,
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
    createdBy: row.created_by,
    leaseOwner: row.lease_owner,
    leaseUntil: row.lease_until,
    leaseEpoch: row.lease_epoch,
  };
}
