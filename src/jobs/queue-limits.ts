import { noteLimited, type Throttle } from '../kernel/targets/throttle.ts';
import type { Database, Queryable } from '../platform/postgres/database.ts';
import { changeRow } from '../platform/work/shared-row.ts';
import { notify } from '../platform/work/wake.ts';
import { sql } from '../platform/postgres/sql.ts';
import { queuesChannel } from './channels.ts';
import type { QueueLimits } from './domain/queue-limits.ts';

/** `nowMs`: the database's clock after the lock was granted. */
export type LockedLimits = Readonly<{ limits: QueueLimits; nowMs: number }>;

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
 * Reads the limits of a queue and blocks other claims of it until this transaction ends; null if the queue has no row.
 * The lock is in a subquery, so that the clock is read after it was granted.
 */
export async function lockLimits(tx: Queryable, queue: string): Promise<LockedLimits | null> {
  const [row] = await tx.query<LimitsRow>(sql`
    SELECT clock_timestamp() AS now, q.*
    FROM (
      SELECT paused, max_running, rate_count, rate_window_ms, window_at, window_taken, throttle
      FROM jobs.queues WHERE queue = ${queue} FOR UPDATE
    ) q`);
  return row === undefined ? null : { limits: limitsOf(row), nowMs: row.now.getTime() };
}

/** Leaves the configured columns and the pause as they are. */
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

/**
 * Halves the rate of a queue in every process because its target is busy; false if that changes nothing.
 * `measuredRate`: calls in the last second, over all processes.
 */
export async function slowQueue(db: Database, queue: string, measuredRate: number): Promise<boolean> {
  const changed = await changeRow<QueueLimits, boolean>(
    db,
    {
      async lock(tx) {
        await tx.query(sql`INSERT INTO jobs.queues (queue) VALUES (${queue}) ON CONFLICT DO NOTHING`);
        const locked = await lockLimits(tx, queue);
        return locked && { state: locked.limits, nowMs: locked.nowMs };
      },
      async write(tx, limits) {
        await writeLimits(tx, queue, limits);
        await notify(tx, queuesChannel);
      },
    },
    (limits, nowMs) => {
      const throttle = noteLimited(limits.throttle, { measuredRate }, nowMs);
      return throttle === limits.throttle
        ? { state: limits, result: false }
        : { state: { ...limits, throttle }, result: true };
    },
  );
  return changed?.result ?? false;
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

/** `holdUntilMs` is not used for queues: a target's Retry-After delays only the job that it answered. */
function storedThrottle({ rate, peak, cutAtMs, windowAtMs, windowTaken }: Throttle): StoredThrottle {
  return { rate, peak, cut_at_ms: cutAtMs, window_at_ms: windowAtMs, window_taken: windowTaken };
}

/** Null for a value that was edited by hand and is not valid. */
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
