/**
 * A token bucket: at most one second's tokens, and never more than a batch. It starts empty, so a process that takes
 * over does not add a burst to what its predecessor has just sent.
 */
export type Pace = Readonly<{ ratePerSecond: number | null; tokens: number; atMs: number }>;

const maxBatch = 1000;
/** Waiting for a single token at a high rate would make a batch of each message. */
const batchesPerSecond = 10;

export function startPace(ratePerSecond: number | null, nowMs: number): Pace {
  return { ratePerSecond, tokens: 0, atMs: nowMs };
}

/** How many messages may be claimed now: none until a tenth of a second's messages, at least one, may be. */
export function allowance(pace: Pace, nowMs: number): number {
  if (pace.ratePerSecond === null) return maxBatch;
  const { tokens } = refill(pace, nowMs);
  return tokens < wantedTokens(pace.ratePerSecond) ? 0 : Math.min(maxBatch, Math.floor(tokens));
}

/** How long until there is an allowance. */
export function waitMs(pace: Pace, nowMs: number): number {
  if (pace.ratePerSecond === null) return 0;
  const missing = wantedTokens(pace.ratePerSecond) - refill(pace, nowMs).tokens;
  return missing <= 0 ? 0 : Math.ceil((missing * 1000) / pace.ratePerSecond);
}

export function spend(pace: Pace, count: number, nowMs: number): Pace {
  const { tokens } = refill(pace, nowMs);
  return { ...pace, tokens: tokens - count, atMs: nowMs };
}

/** The same bucket at another rate. Going from no limit to a limit it is empty. */
export function changeRate(pace: Pace, ratePerSecond: number | null, nowMs: number): Pace {
  if (ratePerSecond === pace.ratePerSecond) return pace;
  const isLimited = ratePerSecond !== null && pace.ratePerSecond !== null;
  const tokens = isLimited ? Math.min(Math.max(1, ratePerSecond), refill(pace, nowMs).tokens) : 0;
  return { ratePerSecond, tokens, atMs: nowMs };
}

function wantedTokens(rate: number): number {
  return Math.min(maxBatch, Math.max(1, Math.floor(rate / batchesPerSecond)));
}

function refill(pace: Pace, nowMs: number): Pace {
  const rate = pace.ratePerSecond ?? 0;
  const added = (rate * Math.max(0, nowMs - pace.atMs)) / 1000;
  return { ...pace, tokens: Math.min(Math.max(1, rate), pace.tokens + added), atMs: nowMs };
}
