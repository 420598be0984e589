/** How long to wait before the next attempt, and what a Retry-After header asks for. */
export type Backoff = Readonly<{
  initialMs: number;
  maxMs: number;
  /** The share of the wait that is random, to both sides: 0.1 gives 90 % to 110 %. */
  jitter: number;
}>;

/** Exponential in the number of failures so far (1 is the first), capped, then spread by the jitter. */
export function backoffMs(backoff: Backoff, failures: number, random: () => number = Math.random): number {
  const exponent = Math.min(Math.max(failures, 1) - 1, 52);
  const base = Math.min(backoff.initialMs * 2 ** exponent, backoff.maxMs);
  return Math.max(0, base * (1 + backoff.jitter * (2 * random() - 1)));
}

/**
 * Reads `Retry-After` in both of its forms, seconds and an HTTP date; undefined when it is neither. The result
 * is never negative and never beyond `maxMs`: a partner cannot park an item for ever.
 */
export function retryAfterMs(header: string | undefined, now: Date, maxMs: number): number | undefined {
  if (header === undefined) return undefined;
  const text = header.trim();
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, maxMs);
  // An HTTP date begins with the day's name; Date.parse alone would take far more than that.
  if (!/^(Mon|Tue|Wed|Thu|Fri|Sat|Sun)/.test(text)) return undefined;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.min(Math.max(at - now.getTime(), 0), maxMs);
}
