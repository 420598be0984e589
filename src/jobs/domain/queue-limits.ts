import { spendTokens, tokensLeft, type Throttle } from '../../kernel/throttle.ts';
import type { RateLimit } from './queue-settings.ts';

/**
 * What bounds a queue over all processes together, as its row says it: how many jobs may run, how many may begin in a
 * window of time, and how fast a target that said it was busy is called now. Claims of such a queue are made one after
 * another, each under a lock on the row, so what is decided here about one claim holds when it is written. All times
 * are the database's.
 *
 * Windows lie side by side on the clock (every whole second, minute or hour), so the last jobs of one and the first of
 * the next may come close together, but no window has more than its count.
 */
export type QueueLimits = Readonly<{
  isPaused: boolean;
  maxRunning: number | null;
  rateLimit: RateLimit | null;
  /** The window that jobs were last claimed in, by its first millisecond, and how many. */
  windowAtMs: number | null;
  windowTaken: number;
  throttle: Throttle | null;
}>;

/** How many jobs may be claimed now; Infinity where nothing bounds them. */
export function claimableNow(limits: QueueLimits, running: number, nowMs: number): number {
  if (limits.isPaused) return 0;
  const { maxRunning, rateLimit } = limits;
  const slots = maxRunning === null ? Infinity : maxRunning - running;
  const inWindow = rateLimit === null ? Infinity : rateLimit.count - takenAt(limits, rateLimit, nowMs);
  return Math.max(0, Math.min(slots, inWindow, tokensLeft(limits.throttle, nowMs)));
}

/** The limits after a claim of so many; the same value where it changes nothing. */
export function noteClaimed(limits: QueueLimits, count: number, nowMs: number): QueueLimits {
  const throttle = spendTokens(limits.throttle, count, nowMs);
  const { rateLimit } = limits;
  if (rateLimit === null || count === 0)
    return throttle === limits.throttle ? limits : { ...limits, throttle };
  return {
    ...limits,
    throttle,
    windowAtMs: windowAt(rateLimit, nowMs),
    windowTaken: takenAt(limits, rateLimit, nowMs) + count,
  };
}

function windowAt({ windowMs }: RateLimit, nowMs: number): number {
  return Math.floor(nowMs / windowMs) * windowMs;
}

/** Also where the windows have become longer since: what was taken within the one of now counts. */
function takenAt({ windowAtMs, windowTaken }: QueueLimits, rateLimit: RateLimit, nowMs: number): number {
  const beginMs = windowAt(rateLimit, nowMs);
  const isWithin = windowAtMs !== null && windowAtMs >= beginMs && windowAtMs < beginMs + rateLimit.windowMs;
  return isWithin ? windowTaken : 0;
}
