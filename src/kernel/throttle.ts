/**
 * How fast somebody outside who said that it is too much (429, for example) is called, over all processes together.
 * One value that they share; all times are the database's, in milliseconds, and rates are calls per second.
 *
 *   no throttle --too much-->                              half of the rate measured, which is remembered as the peak
 *   throttled   --too much, a second after the last cut--> half of the rate, at least 1
 *   throttled   --a second without it-->                   5 % of the peak more
 *   throttled   --the peak is reached-->                   no throttle
 *
 * The second that begins with a cut is never a quiet one, and a second in which all calls are held tells nothing. So
 * a "too much" either cuts the rate or changes nothing, and the rate at any later time follows from the last cut
 * alone: neither a storm of them nor the recovery costs a write.
 *
 * Calls are let out by tokens: each whole second of the database's clock is a window that has as many as the rate
 * allows. Processes take them as they need them, or each its share once a window.
 */
export type Throttle = Readonly<{
  /** Right after the last cut; see `rateAt` for now. */
  rate: number;
  peak: number;
  cutAtMs: number;
  /** Where the other side named a time for everybody, nothing is sent before it. */
  holdUntilMs: number | null;
  /** The window that tokens were last taken of, by its first millisecond, and how many. */
  windowAtMs: number;
  windowTaken: number;
}>;

/** What was sent over all processes in the second before it was too much, and for how long nothing may be sent now. */
export type Limited = Readonly<{ measuredRate: number; retryAfterMs?: number | undefined }>;

const secondMs = 1000;
const lowestRate = 1;
const recoveryShare = 0.05;
const longestHoldMs = 3_600_000;
const holdStepMs = 100;

/** The rate now; null where there is no throttle, or no longer. */
export function rateAt(throttle: Throttle | null, nowMs: number): number | null {
  if (throttle === null) return null;
  const quietSinceMs = Math.max(throttle.cutAtMs + secondMs, throttle.holdUntilMs ?? 0);
  const quietSeconds = Math.max(0, Math.floor((nowMs - quietSinceMs) / secondMs));
  const rate = throttle.rate + quietSeconds * recoveryShare * throttle.peak;
  return quietSeconds > 0 && rate >= throttle.peak ? null : rate;
}

/** For how long nothing may be sent at all. */
export function heldForMs(throttle: Throttle | null, nowMs: number): number {
  return Math.max(0, (throttle?.holdUntilMs ?? 0) - nowMs);
}

/** What follows from a "too much"; the same value where that is nothing. */
export function noteLimited(throttle: Throttle | null, limited: Limited, nowMs: number): Throttle {
  const holdUntilMs = laterOf(throttle?.holdUntilMs ?? null, holdOf(limited, nowMs));
  const rate = rateAt(throttle, nowMs);
  if (throttle === null || rate === null) return firstCut(limited.measuredRate, holdUntilMs, nowMs);
  if (nowMs - throttle.cutAtMs >= secondMs)
    return { ...throttle, rate: halved(rate), cutAtMs: nowMs, holdUntilMs };
  return holdUntilMs === throttle.holdUntilMs ? throttle : { ...throttle, holdUntilMs };
}

/** How much was let out in this window before there was a throttle nobody knows: it counts as spent. */
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

/** Ends at a full step, so that the many wishes of one moment name one end and not each a new one. */
function holdOf({ retryAfterMs = 0 }: Limited, nowMs: number): number | null {
  if (retryAfterMs <= 0) return null;
  const endMs = Math.ceil((nowMs + retryAfterMs) / holdStepMs) * holdStepMs;
  return Math.min(endMs, nowMs + longestHoldMs);
}

function laterOf(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.max(one, other);
}

/** What the window of now has left; Infinity where there is no throttle any more. */
export function tokensLeft(throttle: Throttle | null, nowMs: number): number {
  const rate = rateAt(throttle, nowMs);
  if (throttle === null || rate === null) return Infinity;
  if (heldForMs(throttle, nowMs) > 0) return 0;
  return Math.max(0, Math.floor(rate) - takenAt(throttle, nowMs));
}

/** The throttle after so many tokens of this window were taken; null where it is over. */
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
 * A process's tokens for the window of now: its share, rounded up so that the lowest rate gets through, but never
 * more than the window has left. Infinity where there is no throttle any more.
 */
export function takeTokens(throttle: Throttle | null, replicas: number, nowMs: number): Taking {
  const rate = rateAt(throttle, nowMs);
  if (rate === null) return { throttle: null, tokens: Infinity };
  const share = Math.ceil(rate / Math.max(1, replicas));
  const tokens = Math.min(share, tokensLeft(throttle, nowMs));
  return { throttle: spendTokens(throttle, tokens, nowMs), tokens };
}

/** The window that a moment lies in, by its first millisecond. */
export function windowAt(nowMs: number): number {
  return Math.floor(nowMs / secondMs) * secondMs;
}

export function windowEndsInMs(nowMs: number): number {
  return windowAt(nowMs) + secondMs - nowMs;
}

/** Counts what a process sends: in the second under way, and in the one before. On any clock that never goes back. */
export type Meter = Readonly<{ secondAtMs: number; count: number; countBefore: number }>;

export const emptyMeter: Meter = { secondAtMs: 0, count: 0, countBefore: 0 };

export function countSent(meter: Meter, count: number, nowMs: number): Meter {
  const { secondAtMs, count: soFar, countBefore } = meterAt(meter, nowMs);
  return { secondAtMs, count: soFar + count, countBefore };
}

/** The rate of the last second: of the second before, as much is taken as still lies within it. */
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
