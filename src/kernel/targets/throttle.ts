import { secondMs } from '../duration.ts';

/**
 * Limits the rate of calls to a target that answered "too many requests" (429), over all processes together. They
 * share one value; all times are the database's, in milliseconds, and rates are calls per second.
 *
 *   no throttle --429-->                                   half of the measured rate, which is kept as the peak
 *   throttled   --429, at least a second after the cut-->  half of the rate, at least 1
 *   throttled   --a second without 429-->                  5 % of the peak more
 *   throttled   --the peak is reached-->                   no throttle
 *
 * The second after a cut never counts as quiet, nor does time in which all calls are blocked. So a 429 either cuts the
 * rate or changes nothing, and the rate at any later time follows from the last cut alone: neither a storm of 429s nor
 * the recovery costs a write.
 *
 * Calls spend tokens: each whole second of the database's clock is a window with as many tokens as the rate allows.
 * Processes take them as they need them, or take their share once per window.
 */
export type Throttle = Readonly<{
  /** Right after the last cut; see `rateAt` for now. */
  rate: number;
  peak: number;
  cutAtMs: number;
  /** From Retry-After: nothing is sent before it. */
  holdUntilMs: number | null;
  /** The window of which tokens were last taken, by its first millisecond, and how many were taken. */
  windowAtMs: number;
  windowTaken: number;
}>;

/** The rate over all processes in the second before a 429, and its Retry-After. */
export type Limited = Readonly<{ measuredRate: number; retryAfterMs?: number | undefined }>;

const lowestRate = 1;
const recoveryShare = 0.05;
/** A Retry-After that asks for more is a mistake, or is learned again after an hour. */
const longestHoldMs = 3_600_000;
/** Replicas that get the same Retry-After agree on the same end. */
const holdStepMs = 100;

/** The rate now; null where there is no throttle, or no longer. */
export function rateAt(throttle: Throttle | null, nowMs: number): number | null {
  if (throttle === null) return null;
  const quietSinceMs = Math.max(throttle.cutAtMs + secondMs, throttle.holdUntilMs ?? 0);
  const quietSeconds = Math.max(0, Math.floor((nowMs - quietSinceMs) / secondMs));
  const rate = throttle.rate + quietSeconds * recoveryShare * throttle.peak;
  return quietSeconds > 0 && rate >= throttle.peak ? null : rate;
}

/** How long nothing may be sent at all. */
export function blockedForMs(throttle: Throttle | null, nowMs: number): number {
  return Math.max(0, (throttle?.holdUntilMs ?? 0) - nowMs);
}

/** The throttle after a 429; the same value where nothing changes. */
export function noteLimited(throttle: Throttle | null, limited: Limited, nowMs: number): Throttle {
  const holdUntilMs = laterOf(throttle?.holdUntilMs ?? null, holdOf(limited, nowMs));
  const rate = rateAt(throttle, nowMs);
  if (throttle === null || rate === null) return firstCut(limited.measuredRate, holdUntilMs, nowMs);
  if (nowMs - throttle.cutAtMs >= secondMs)
    return { ...throttle, rate: halved(rate), cutAtMs: nowMs, holdUntilMs };
  return holdUntilMs === throttle.holdUntilMs ? throttle : { ...throttle, holdUntilMs };
}

/** How many calls were made in this window before is unknown: it counts as spent. */
function firstCut(measuredRate: number, holdUntilMs: number | null, nowMs: number): Throttle {
  const peak = Math.max(lowestRate, measuredRate);
  const rate = halved(peak);
  return {
    rate,
    peak,
    cutAtMs: nowMs,
    holdUntilMs,
    windowAtMs: windowAt(nowMs),
    windowTaken: Math.floor(rate),
  };
}

function halved(rate: number): number {
  return Math.max(lowestRate, rate / 2);
}

/** Rounded up to a full step, so that many answers at the same time agree on one end. */
function holdOf({ retryAfterMs = 0 }: Limited, nowMs: number): number | null {
  if (retryAfterMs <= 0) return null;
  const endMs = Math.ceil((nowMs + retryAfterMs) / holdStepMs) * holdStepMs;
  return Math.min(endMs, nowMs + longestHoldMs);
}

function laterOf(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.max(one, other);
}

/** The tokens left in the current window; Infinity without a throttle. */
export function tokensLeft(throttle: Throttle | null, nowMs: number): number {
  const rate = rateAt(throttle, nowMs);
  if (throttle === null || rate === null) return Infinity;
  if (blockedForMs(throttle, nowMs) > 0) return 0;
  return Math.max(0, Math.floor(rate) - takenAt(throttle, nowMs));
}

/** The throttle after taking tokens of the current window; null when it has ended. */
export function spendTokens(throttle: Throttle | null, tokens: number, nowMs: number): Throttle | null {
  if (throttle === null || rateAt(throttle, nowMs) === null) return null;
  if (tokens === 0) return throttle;
  return { ...throttle, windowAtMs: windowAt(nowMs), windowTaken: takenAt(throttle, nowMs) + tokens };
}

function takenAt({ windowAtMs, windowTaken }: Throttle, nowMs: number): number {
  return windowAtMs === windowAt(nowMs) ? windowTaken : 0;
}

export type Taking = Readonly<{ throttle: Throttle | null; tokens: number }>;

/**
 * A process's tokens for the current window: its share, rounded up so that the lowest rate gets through, but never
 * more than the window has left. Infinity without a throttle.
 */
export function takeTokens(throttle: Throttle | null, replicas: number, nowMs: number): Taking {
  const rate = rateAt(throttle, nowMs);
  if (rate === null) return { throttle: null, tokens: Infinity };
  const share = Math.ceil(rate / Math.max(1, replicas));
  const tokens = Math.min(share, tokensLeft(throttle, nowMs));
  return { throttle: spendTokens(throttle, tokens, nowMs), tokens };
}

/** The window of a time, by its first millisecond. */
export function windowAt(nowMs: number): number {
  return Math.floor(nowMs / secondMs) * secondMs;
}

export function windowEndsInMs(nowMs: number): number {
  return windowAt(nowMs) + secondMs - nowMs;
}

/** Counts the calls of a process in the current second and in the one before, on a monotonic clock. */
export type Meter = Readonly<{ secondAtMs: number; count: number; countBefore: number }>;

export const emptyMeter: Meter = { secondAtMs: 0, count: 0, countBefore: 0 };

export function countSent(meter: Meter, count: number, nowMs: number): Meter {
  const { secondAtMs, count: soFar, countBefore } = meterAt(meter, nowMs);
  return { secondAtMs, count: soFar + count, countBefore };
}

/** The calls of the last second: a sliding window over the current second and the one before. */
export function measuredRate(meter: Meter, nowMs: number): number {
  const { secondAtMs, count, countBefore } = meterAt(meter, nowMs);
  return count + countBefore * (1 - (nowMs - secondAtMs) / secondMs);
}

function meterAt(meter: Meter, nowMs: number): Meter {
  const secondAtMs = windowAt(nowMs);
  if (secondAtMs === meter.secondAtMs) return meter;
  const isNext = secondAtMs === meter.secondAtMs + secondMs;
  return { secondAtMs, count: 0, countBefore: isNext ? meter.count : 0 };
}
