import { codeOf } from '../kernel/errors.ts';
import { MAX_JSON_BYTES } from '../kernel/json-extent.ts';
import type { Queryable } from '../platform/postgres/database.ts';
import { sql } from '../platform/postgres/sql.ts';
import type { ClaimedJob, ClaimOptions } from './claim-jobs.ts';
import type { Settlement } from './settle-jobs.ts';

export type PayloadRequest = Pick<ClaimedJob, 'jobId' | 'lease'> & Pick<ClaimOptions, 'payloadAs'>;

/** `release` is called when the payload is no longer needed. */
export type PayloadReading =
  | Readonly<{ payload: unknown; release?: () => void }>
  | Readonly<{ isTooLarge: true }>;

/** The payload of a claimed job; null if its lease was lost. */
export async function readPayload(db: Queryable, job: PayloadRequest): Promise<PayloadReading | null> {
  const [row] = await readText(db, job, MAX_JSON_BYTES).catch(asTooLong);
  if (row === undefined) return null;
  if (row.payload === null) return { isTooLarge: true };
  return { payload: job.payloadAs === 'text' ? row.payload : JSON.parse(row.payload) };
}

/** Its size as text, up to the largest payload that a worker is given. */
export async function payloadBytes(db: Queryable, job: PayloadRequest): Promise<number> {
  const [row] = await readText(db, job, 0).catch(asTooLong);
  return Math.min(row?.bytes ?? 0, MAX_JSON_BYTES);
}

/** Such a payload was stored before there was a limit, or by SQL. No worker can ever be given it. */
export function payloadTooLarge(job: Settlement['job']): Settlement {
  const error = `payload is larger than ${MAX_JSON_BYTES} bytes as text, the most that a worker is given`;
  return { job, ran: null, outcome: 'failed', error, isRetryable: false, retryAfterMs: null };
}

type PayloadRow = Readonly<{ bytes: number; payload: string | null }>;

/** Converts the payload to text once; null if that is longer than `maxBytes`. */
function readText(
  db: Queryable,
  { jobId, lease }: PayloadRequest,
  maxBytes: number,
): Promise<readonly PayloadRow[]> {
  return db.query<PayloadRow>(sql`
    SELECT octet_length(whole.text) AS bytes, CASE WHEN octet_length(whole.text) <= ${maxBytes} THEN whole.text END AS payload
    FROM (SELECT payload::text AS text FROM jobs.job_queue
          WHERE job_id = ${jobId} AND lease_epoch = ${lease.epoch} AND status = 'running' OFFSET 0) AS whole`);
}

/** PostgreSQL cannot build a text of that length. */
function asTooLong(error: unknown): readonly PayloadRow[] {
  if (codeOf(error) !== '54000') throw error;
  return [{ bytes: MAX_JSON_BYTES, payload: null }];
}
