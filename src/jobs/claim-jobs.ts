import { MAX_JSON_BYTES } from '../kernel/json-extent.ts';
import type { Lease } from '../kernel/lease.ts';
import type { Queryable } from '../platform/postgres/database.ts';
import { sql, type Sql } from '../platform/postgres/sql.ts';
import { claim, type Worker } from '../platform/work/work.ts';
import { claimableNow, noteClaimed } from './domain/queue-limits.ts';
import { jobs, mustRunAlone, type WorkDeps } from './jobs-table.ts';
import { lockLimits, writeLimits } from './queue-limits.ts';

export type ClaimedJob = Readonly<{
  jobId: string;
  queue: string;
  /** A JavaScript value, or JSON text if the claim asked for text. */
  payload: unknown;
  /** Long payloads are read when the job starts, because hundreds of jobs may be claimed ahead. */
  isPayloadApart: boolean;
  retryCount: number;
  maxRetries: number;
  deferrals: number;
  trace: string | null;
  lease: Lease;
  /** When the claim returned, on the monotonic clock. */
  claimedAtMs: number;
  /** How long it had been due, by the database's clock. */
  dueForMs: number;
}>;

export type ClaimOptions = Readonly<{
  queue: string;
  limit: number;
  leaseMs: number;
  /** Only jobs that must run alone; otherwise only the others. */
  isSolo?: boolean;
  /** Starts after this position. */
  after?: QueuePosition | null;
  /** `text` loses no digit of a number; for payloads that are passed on. */
  payloadAs?: 'value' | 'text';
  /**
   * Returns all payloads, and only as many jobs as have this many bytes of payload together; at least one, unless
   * `isStrict`. Without it, long payloads are left out.
   */
  whole?: Readonly<{ maxBytes: number; isStrict: boolean }>;
  /** Who claims over HTTP; null without authentication. Absent in workers with a connection to the database. */
  claimedBy?: string | null;
  /** Few jobs are expected: use a prepared statement, whose plan suits a short queue. */
  isQuick?: boolean;
}>;

export type QueuePosition = Readonly<{ sortAt: string; jobId: string }>;

/** `last`: the position of the last job. */
export type Claimed = Readonly<{ jobs: readonly ClaimedJob[]; last: QueuePosition | null }>;

export const nothingClaimed: Claimed = { jobs: [], last: null };

export function claimJobs(deps: WorkDeps, options: ClaimOptions): Promise<Claimed> {
  return deps.queues.isLimited(options.queue)
    ? claimLimited(deps, options)
    : claimUnlimited(deps.worker, options);
}

/** Whether a job of the queue is due that must run alone. */
export async function isSoloJobDue(db: Queryable, queue: string): Promise<boolean> {
  const rows = await db.query(sql`
    SELECT 1 FROM jobs.job_queue t
    WHERE t.queue = ${queue} AND t.status IN ('pending', 'failed') AND t.sort_at <= now() AND ${mustRunAlone}
      AND NOT EXISTS (SELECT 1 FROM jobs.queues q WHERE q.queue = ${queue} AND q.paused)
    LIMIT 1`);
  return rows.length > 0;
}

/** Claims nothing from a limited queue: a process that does not know of the limits yet waits until it does. */
function claimUnlimited(worker: Worker, options: ClaimOptions): Promise<Claimed> {
  const isOpen = sql`
      AND NOT EXISTS (
        SELECT 1 FROM jobs.queues q
        WHERE q.queue = ${options.queue}
          AND (q.paused OR q.max_running IS NOT NULL OR q.rate_count IS NOT NULL OR q.throttle IS NOT NULL))`;
  return claimDue(worker, options, isOpen);
}

/**
 * Claims from a queue that is limited over all processes: one claim at a time, under a lock on the queue's row. The
 * running jobs are counted by a statement after the one that waited for the lock, so it sees what the previous claim
 * has committed; others can only end jobs meanwhile.
 */
function claimLimited({ db, worker }: WorkDeps, options: ClaimOptions): Promise<Claimed> {
  const { queue, limit } = options;
  return db.transaction(async (tx) => {
    const locked = await lockLimits(tx, queue);
    // Without a row the queue is no longer limited.
    if (locked === null) return claimDue({ ...worker, db: tx }, options);
    const { limits, nowMs } = locked;
    const running = limits.maxRunning === null ? 0 : await countRunning(tx, queue);
    const most = Math.min(limit, claimableNow(limits, running, nowMs));
    const claimed =
      most === 0 ? nothingClaimed : await claimDue({ ...worker, db: tx }, { ...options, limit: most });
    const after = noteClaimed(limits, claimed.jobs.length, nowMs);
    if (after !== limits) await writeLimits(tx, queue, after);
    return claimed;
  });
}

async function countRunning(tx: Queryable, queue: string): Promise<number> {
  const [row] = await tx.query<{ count: bigint }>(sql`
    SELECT count(*) AS count FROM jobs.job_queue WHERE queue = ${queue} AND status = 'running'`);
  return Number(row?.count ?? 0n);
}

type ClaimedRow = Readonly<{
  job_id: string;
  /** JSON text; null if it is read later. */
  payload: string | null;
  retry_count: number;
  max_retries: number;
  deferrals: number;
  trace: string | null;
  due_for_ms: number;
  /** Only of the last row. */
  position: string | null;
}>;

/** Stored size. Compressed values are not short: they may be a hundred times as long as text. */
const shortBytes = 8192;
const shortText = 16_384;
const isShort = sql`pg_column_size(t.payload) <= ${shortBytes} AND pg_column_compression(t.payload) IS NULL
  AND octet_length(t.payload::text) <= ${shortText}`;

/** `run_at` may be before the creation, but a job cannot have waited for longer than it exists. */
const dueForMs = sql`GREATEST(date_part('epoch', clock_timestamp() - GREATEST(t.run_at, t.created_at)) * 1000, 0)`;

/** `isOpen`: a further condition, with a leading AND. */
async function claimDue(worker: Worker, options: ClaimOptions, isOpen: Sql = sql``): Promise<Claimed> {
  const { queue, whole, after = null } = options;
  const isReturned = whole === undefined ? isShort : sql`platform.json_bytes(t.payload) <= ${MAX_JSON_BYTES}`;
  const claimedBy = options.claimedBy === undefined ? sql`` : sql`, claimed_by = ${options.claimedBy}`;
  const { lease, rows } = await claim<ClaimedRow>(worker, jobs, {
    where: sql`t.queue = ${queue} AND t.status IN ('pending', 'failed') AND t.sort_at <= now()
      AND ${options.isSolo === true ? mustRunAlone : sql`NOT (${mustRunAlone})`}
      ${after === null ? sql`` : sql`AND (t.sort_at, t.job_id) > (${after.sortAt}::timestamptz, ${after.jobId}::uuid)`}
      ${isOpen}`,
    orderBy: sql`t.sort_at, t.job_id`,
    limit: options.limit,
    leaseMs: options.leaseMs,
    ...(whole === undefined
      ? {}
      : {
          fit: {
            bytes: sql`platform.json_bytes(t.payload)`,
            most: whole.maxBytes,
            isStrict: whole.isStrict,
          },
        }),
    set: sql`status = 'running', started_at = clock_timestamp()${claimedBy}`,
    returning: sql`t.job_id, CASE WHEN ${isReturned} THEN t.payload::text END AS payload, t.retry_count,
      t.max_retries, t.deferrals, t.trace, t.sort_at, ${dueForMs} AS due_for_ms`,
    select: sql`job_id, payload, retry_count, max_retries, deferrals, trace, due_for_ms, claim_epoch,
      CASE WHEN job_id = (SELECT c.job_id FROM claimed c ORDER BY c.sort_at DESC, c.job_id DESC LIMIT 1)
           THEN sort_at::text END AS position`,
    rowOrder: sql`sort_at, job_id`,
    isPrepared: options.isQuick === true,
  });
  const last = rows.at(-1);
  const claimedAtMs = worker.clock.monotonicMs();
  const isText = options.payloadAs === 'text';
  return {
    jobs: rows.map((row) => claimedJob(row, { queue, lease, claimedAtMs, isText })),
    last: last === undefined || last.position === null ? null : { sortAt: last.position, jobId: last.job_id },
  };
}

function claimedJob(
  row: ClaimedRow,
  {
    queue,
    lease,
    claimedAtMs,
    isText,
  }: Readonly<{ queue: string; lease: Lease; claimedAtMs: number; isText: boolean }>,
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
    claimedAtMs,
    dueForMs: row.due_for_ms,
  };
}

/** Milliseconds until the next job of the queue is due, less than 0 where one is; null where none waits. */
export async function nextDueInMs(db: Queryable, queue: string): Promise<number | null> {
  const [row] = await db.query<{ due_in_ms: number }>(sql`
    SELECT date_part('epoch', LEAST(t.sort_at, now() + interval '1 day') - clock_timestamp()) * 1000 AS due_in_ms
    FROM jobs.job_queue t
    WHERE t.queue = ${queue} AND t.status IN ('pending', 'failed')
    ORDER BY t.sort_at, t.job_id LIMIT 1`);
  return row?.due_in_ms ?? null;
}
