import type { Throttle } from '../../kernel/throttle.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { QueueLimits } from '../domain/queue-limits.ts';

export type LimitsReading = Readonly<{
  limits: QueueLimits;
  /** The database's clock after the lock was granted. */
  nowMs: number;
}>;

type LimitsRow = Readonly<{
  now: Date;
  paused: boolean;
  max_running: number | null;
  rate_count: number | null;
  rate_window_ms: number | null;
  window_at: Date | null;
  window_taken: number;
  throttle: unknown;
}>;

/**
 * Reads what bounds a queue and keeps others from claiming until this transaction ends; null where the queue has no
 * row. The lock lies in a query of its own below: so the clock is read after it was granted.
 */
export async function lockLimits(tx: Queryable, queue: string): Promise<LimitsReading | null> {
  const [row] = await tx.query<LimitsRow>(sql`
    SELECT clock_timestamp() AS now, q.*
    FROM (
      SELECT paused, max_running, rate_count, rate_window_ms, window_at, window_taken, throttle
      FROM jobs.queues WHERE queue = ${queue} FOR UPDATE
    ) q`);
  return row === undefined ? null : { limits: limitsOf(row), nowMs: row.now.getTime() };
}

/** What is configured, and whether it is paused, is not written here. */
export async function writeLimits(
  tx: Queryable,
  queue: string,
  { windowAtMs, windowTaken, throttle }: QueueLimits,
): Promise<void> {
  await tx.query(sql`
    UPDATE jobs.queues
    SET window_at = ${windowAtMs === null ? null : new Date(windowAtMs)}, window_taken = ${windowTaken},
        throttle = ${throttle === null ? null : JSON.stringify(storedThrottle(throttle))}::jsonb
    WHERE queue = ${queue}`);
}

function limitsOf(row: LimitsRow): QueueLimits {
  return {
    isPaused: row.paused,
    maxRunning: row.max_running,
    rateLimit:
      row.rate_count === null || row.rate_window_ms === null
        ? null
        : { count: row.rate_count, windowMs: row.rate_window_ms },
    windowAtMs: row.window_at?.getTime() ?? null,
    windowTaken: row.window_taken,
    throttle: readThrottle(row.throttle),
  };
}

type StoredThrottle = Readonly<{
  rate: number;
  peak: number;
  cut_at_ms: number;
  window_at_ms: number;
  window_taken: number;
}>;

/** A queue is never held as a whole: a target that names a time means the job that it was asked about. */
function storedThrottle({ rate, peak, cutAtMs, windowAtMs, windowTaken }: Throttle): StoredThrottle {
  return { rate, peak, cut_at_ms: cutAtMs, window_at_ms: windowAtMs, window_taken: windowTaken };
}

/** What somebody wrote there by hand and is none counts as none. */
function readThrottle(stored: unknown): Throttle | null {
  if (typeof stored !== 'object' || stored === null) return null;
  const {
    rate,
    peak,
    cut_at_ms: cutAtMs,
    window_at_ms: windowAtMs,
    window_taken: windowTaken,
  } = stored as Partial<StoredThrottle>;
  if (!isFiniteNumber(rate) || !isFiniteNumber(peak) || !isFiniteNumber(cutAtMs)) return null;
  if (!isFiniteNumber(windowAtMs) || !isFiniteNumber(windowTaken)) return null;
  return { rate, peak, cutAtMs, holdUntilMs: null, windowAtMs, windowTaken };
}

function isFiniteNumber(value: unknown): value is number {
  return Number.isFinite(value);
}
