/**
 * What a handler may say about its job besides done and failed. Thrown (or, for a snooze, returned), and recognised
 * by a mark, not by its class: the handler may have loaded another copy of the library.
 */
const mark = Symbol.for('redrive.jobs.signal');

export type HandlerSignal =
  | Readonly<{ signal: 'not_retryable' }>
  | Readonly<{ signal: 'retry_after'; delayMs: number }>
  | Readonly<{ signal: 'snooze'; delayMs: number }>
  | Readonly<{ signal: 'busy'; delayMs: number }>;

export type SignalError = Error & Readonly<{ [mark]: HandlerSignal }>;

/** It will never succeed: dead at once. */
export function notRetryable(message: string, cause?: unknown): SignalError {
  return withSignal(message, { signal: 'not_retryable' }, cause);
}

/** It failed, and is not to be tried before this time. */
export function retryAfter(delayMs: number, message: string, cause?: unknown): SignalError {
  return withSignal(message, { signal: 'retry_after', delayMs: checked(delayMs) }, cause);
}

/** Not now: it did not fail, and costs no retry. */
export function snooze(delayMs: number): SignalError {
  return withSignal('snoozed', { signal: 'snooze', delayMs: checked(delayMs) });
}

/** Whoever does the work has no time for it: it did not fail, and waits for its backoff at least. */
export function busy(message: string, delayMs = 0): SignalError {
  return withSignal(message, { signal: 'busy', delayMs: checked(delayMs) });
}

export function readSignal(value: unknown): HandlerSignal | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  return (value as { [mark]?: HandlerSignal })[mark];
}

function withSignal(message: string, signal: HandlerSignal, cause?: unknown): SignalError {
  return Object.assign(new Error(message, cause === undefined ? undefined : { cause }), { [mark]: signal });
}

const longestMs = 365 * 86_400_000;

function checked(delayMs: number): number {
  if (!Number.isFinite(delayMs) || delayMs < 0 || delayMs > longestMs)
    throw new RangeError(`a delay is from 0 ms to a year, not ${delayMs}`);
  return delayMs;
}
