import { systemClock } from '../kernel/clock.ts';
import { AppError } from '../kernel/errors.ts';
import { findUnsafeInput } from '../kernel/unsafe-input.ts';
import { createUuidMaker } from '../kernel/uuid.ts';
import type { Status } from '../jobs/domain/job.ts';
import { prepared, sql } from '../platform/postgres/sql.ts';
import { queueOf, readPayload, type Queue } from './queue.ts';
import { traceparentOf } from './traceparent.ts';
import { askClient, type Transaction } from './transaction.ts';
import { writeJson } from './write-json.ts';

export type EnqueueOptions = Readonly<{
  /** At most one job of the queue with this key is not over; 1 to 500 characters. */
  dedupeKey?: string | undefined;
  /** 0 to 100, higher first. A step is worth a minute of waiting, so nothing waits for ever. */
  priority?: number | undefined;
  /** Not before this time. */
  runAt?: Date | undefined;
  /** How many failures make it dead; by default what holds for its queue. */
  maxRetries?: number | undefined;
  /** Where the handler belongs in a trace; by default below the active OpenTelemetry span. */
  traceparent?: string | undefined;
}>;

export type NewJob<Payload = unknown> = Readonly<{ payload: Payload }> & EnqueueOptions;

/** `duplicate`: a job with this dedupe key is there and not over; the id and the status are that job's. */
export type EnqueuedJob = Readonly<{ jobId: string; status: Status; duplicate: boolean }>;

const maxPayloadBytes = 1024 * 1024;
const maxRetriesLimit = 1000;
const batchSize = 1000;
/** Whatever the number of jobs: a statement that is much larger is slow to send and to take apart. */
const batchBytes = 4 * 1024 * 1024;

/**
 * Adds a job in the caller's transaction: with its commit the job is there, with its rollback it never was. What can
 * never be stored is refused with an error before the database is asked, so that the transaction can go on.
 */
export async function enqueue<Input, Output>(
  tx: Transaction,
  queue: string | Queue<Input, Output>,
  payload: Input,
  options: EnqueueOptions = {},
): Promise<EnqueuedJob> {
  requireQuery('jobs.enqueue(tx, queue, payload)', tx);
  const target = queueOf(queue);
  // As they are now, whatever the caller does with them later.
  const job = storableOf(payload, options);
  if (target.schema !== null) await requireMatch(target, payload, '');
  const statement = sql`
    SELECT job_id::text AS job_id, status, is_duplicate::text AS is_duplicate
    FROM jobs.enqueue(
      p_queue => ${target.name}::text, p_payload => ${job.payload}::jsonb, p_dedupe_key => ${job.dedupeKey}::text,
      p_priority => ${job.priority}::int, p_run_at => ${job.runAt}::timestamptz,
      p_max_retries => ${job.maxRetries}::int, p_trace => ${job.trace}::text)`;
  const [row] = await askClient(tx, prepared(statement), { call: 'jobs.enqueue', slice: 'jobs' });
  return enqueuedOf(row as EnqueuedRow);
}

/**
 * Adds many jobs in the caller's transaction, a thousand per statement; the answers are in the order of the jobs. One
 * that can never be stored refuses all of them before the database is asked.
 */
export async function enqueueMany<Input, Output>(
  tx: Transaction,
  queue: string | Queue<Input, Output>,
  jobs: readonly NewJob<Input>[],
): Promise<readonly EnqueuedJob[]> {
  requireQuery('jobs.enqueueMany(tx, queue, jobs)', tx);
  const target = queueOf(queue);
  const newId = createUuidMaker(systemClock);
  const trace = traceparentOf(undefined);
  const texts: string[] = [];
  for (const [i, job] of jobs.entries()) {
    const at = `jobs[${i}].`;
    const storable = storableOf(job.payload, job, { at, trace });
    if (target.schema !== null) await requireMatch(target, job.payload, at);
    // Their ids grow, so that they are handled in this order.
    texts.push(elementOf(storable, newId()));
  }
  const answers: EnqueuedJob[] = [];
  for (const batch of batchesOf(texts)) {
    const statement = sql`
      SELECT job_id::text AS job_id, status, is_duplicate::text AS is_duplicate
      FROM jobs.enqueue_many(${target.name}::text, ${`[${batch.join()}]`}::jsonb)`;
    const rows = await askClient(tx, statement, { call: 'jobs.enqueueMany', slice: 'jobs' });
    for (const row of rows) answers.push(enqueuedOf(row as EnqueuedRow));
  }
  return answers;
}

/** All as text: a service may have told its pg to read booleans and ids in ways of its own. */
type EnqueuedRow = Readonly<{ job_id: string; status: Status; is_duplicate: string }>;

function enqueuedOf({ job_id, status, is_duplicate }: EnqueuedRow): EnqueuedJob {
  return { jobId: job_id, status, duplicate: is_duplicate === 'true' };
}

/** What the statements need, all of it storable. */
type StorableJob = Readonly<{
  /** JSON text. */
  payload: string;
  dedupeKey: string | null;
  priority: number;
  runAt: string | null;
  maxRetries: number | null;
  trace: string | null;
}>;

async function requireMatch<Input, Output>(
  queue: Queue<Input, Output>,
  payload: Input,
  at: string,
): Promise<void> {
  const read = await readPayload(queue, payload);
  if (!read.ok) throw refused(at, `payload does not match the schema of ${queue.name}: ${read.reason}`);
}

function storableOf(
  payload: unknown,
  options: EnqueueOptions,
  { at = '', trace }: Readonly<{ at?: string; trace?: string | null }> = {},
): StorableJob {
  const { dedupeKey = null, priority = 0, runAt = null, maxRetries = null, traceparent } = options;
  const flaw =
    flawOfKey(dedupeKey) ??
    flawOfNumber('priority', priority, 0, 100) ??
    flawOfTime(runAt) ??
    (maxRetries === null ? null : flawOfNumber('maxRetries', maxRetries, 1, maxRetriesLimit));
  if (flaw !== null) throw refused(at, flaw);
  return {
    payload: payloadText(at, payload),
    dedupeKey,
    priority,
    runAt: runAt?.toISOString() ?? null,
    maxRetries,
    trace: traceparent === undefined && trace !== undefined ? trace : traceparentOf(traceparent),
  };
}

function payloadText(at: string, payload: unknown): string {
  const written = writeJson('payload', payload);
  if ('reason' in written) throw refused(at, written.reason);
  const { text } = written;
  if (Buffer.byteLength(text) > maxPayloadBytes)
    throw refused(at, `payload is larger than ${maxPayloadBytes} bytes of JSON`);
  // A short text without an escape by number is neither too deep nor holds what PostgreSQL cannot store.
  const flaw =
    text.length > 1000 || text.includes('\\u') || text.includes('__proto__')
      ? findUnsafeInput(JSON.parse(text), 'payload')
      : null;
  if (flaw !== null) throw refused(at, `payload: ${flaw.field} ${flaw.message}`);
  return text;
}

/** One element for `jobs.enqueue_many`; the payload is JSON already. */
function elementOf(job: StorableJob, jobId: string): string {
  let text = `{"job_id":"${jobId}","payload":${job.payload}`;
  if (job.dedupeKey !== null) text += `,"dedupe_key":${JSON.stringify(job.dedupeKey)}`;
  if (job.priority !== 0) text += `,"priority":${job.priority}`;
  if (job.runAt !== null) text += `,"run_at":"${job.runAt}"`;
  if (job.maxRetries !== null) text += `,"max_retries":${job.maxRetries}`;
  if (job.trace !== null) text += `,"trace":${JSON.stringify(job.trace)}`;
  return `${text}}`;
}

function* batchesOf(texts: readonly string[]): Generator<readonly string[]> {
  let batch: string[] = [];
  let length = 0;
  for (const text of texts) {
    if (batch.length === batchSize || (batch.length > 0 && length + text.length > batchBytes)) {
      yield batch;
      batch = [];
      length = 0;
    }
    batch.push(text);
    length += text.length;
  }
  if (batch.length > 0) yield batch;
}

/** A pool will do where the job is to be added by itself, outside of any transaction. */
function requireQuery(call: string, tx: unknown): void {
  if (typeof (tx as Readonly<{ query?: unknown }> | null)?.query !== 'function')
    throw new TypeError(
      `${call}: tx is no client with query(text, values), such as a Client or PoolClient of pg`,
    );
}

function refused(at: string, reason: string): AppError {
  return new AppError('SYS_JOBS_INVALID', 'validation', `${at}${reason}`);
}

function flawOfKey(key: unknown): string | null {
  if (key === null) return null;
  if (typeof key !== 'string' || key === '' || Array.from(key.slice(0, 1001)).length > 500)
    return 'dedupeKey is not a text of 1 to 500 characters';
  const unsafe = findUnsafeInput(key, 'dedupeKey');
  return unsafe === null ? null : `dedupeKey ${unsafe.message}`;
}

function flawOfNumber(name: string, value: unknown, least: number, most: number): string | null {
  const fits = Number.isInteger(value) && (value as number) >= least && (value as number) <= most;
  return fits ? null : `${name} is not a whole number from ${least} to ${most}`;
}

const latest = Date.UTC(9999, 11, 31);

function flawOfTime(runAt: unknown): string | null {
  if (runAt === null) return null;
  const isTime = runAt instanceof Date && runAt.getTime() >= 0 && runAt.getTime() <= latest;
  return isTime ? null : 'runAt is not a Date from 1970 to 9999';
}
