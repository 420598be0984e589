import { spendTokens, tokensLeft, type Throttle } from '../../kernel/targets/throttle.ts';
import type { RateLimit } from './queue-settings.ts';

/**
 * The limits of a queue over all processes, from its row: how many jobs may run, how many may start per time window,
 * and the throttle of a target that reported to be busy. Claims of such a queue run one after another, each under a
 * lock on the row, so a decision about a claim is still valid when it is written. All times are the database's.
 *
 * Windows are aligned to the clock (every full second, minute or hour): the last jobs of one and the first of the next
 * may start close together, but no window has more than its count.
 */
export type QueueLimits = Readonly<{
  isPaused: boolean;
  maxRunning: number | null;
  rateLimit: RateLimit | null;
  /** The start of the last window with claims, and their number. */
  windowAtMs: number | null;
  windowTaken: number;
  throttle: Throttle | null;
}>;

/** How many jobs may be claimed now; Infinity if there is no limit. */
export function claimableNow(limits: QueueLimits, running: number, nowMs: number): number {
  if (limits.isPaused) return 0;
  const { maxRunning, rateLimit } = limits;
  const slots = maxRunning === null ? Infinity : maxRunning - running;
  const inWindow = rateLimit === null ? Infinity : rateLimit.count - takenAt(limits, rateLimit, nowMs);
  return Math.max(0, Math.min(slots, inWindow, tokensLeft(limits.throttle, nowMs)));
}

/** The limits after a claim of `count` jobs; the same object if nothing changes. */
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

/** Also if the window length has changed since: what was taken within the current window counts. */
function takenAt({ windowAtMs, windowTaken }: QueueLimits, rateLimit: RateLimit, nowMs: number): number {
  const beginMs = windowAt(rateLimit, nowMs);
  const isWithin = windowAtMs !== null && windowAtMs >= beginMs && windowAtMs < beginMs + rateLimit.windowMs;
  return isWithin ? windowTaken : 0;
}
