import { attempt } from '../../kernel/thrown.ts';

/**
 * Outcomes that a handler can signal beside success and failure. Thrown or returned, and recognised by a symbol, not by
 * class: the handler may have loaded another copy of the library.
 */
const mark = Symbol.for('redrive.jobs.signal');

export type HandlerSignal =
  | Readonly<{ signal: 'not_retryable' }>
  | Readonly<{ signal: 'retry_after'; delayMs: number }>
  | Readonly<{ signal: 'snooze'; delayMs: number }>
  | Readonly<{ signal: 'busy'; delayMs: number }>
  | Readonly<{ signal: 'outage'; delayMs: number }>;

export type SignalError = Error & Readonly<{ [mark]: HandlerSignal }>;

/** It will never succeed: dead-letters the job at once. */
export function notRetryable(message: string, cause?: unknown): SignalError {
  return withSignal(message, { signal: 'not_retryable' }, cause);
}

/** It failed, and must not be retried earlier. */
export function retryAfter(delayMs: number, message: string, cause?: unknown): SignalError {
  return withSignal(message, { signal: 'retry_after', delayMs: checked(delayMs) }, cause);
}

/** Run it later: it did not fail, and costs no retry. */
export function snooze(delayMs: number): SignalError {
  return withSignal('snoozed', { signal: 'snooze', delayMs: checked(delayMs) });
}

/** The target is busy: the job did not fail, and waits for its backoff at least. */
export function busy(message: string, delayMs = 0): SignalError {
  return withSignal(message, { signal: 'busy', delayMs: checked(delayMs) });
}

/** The target is down: the job waits as for a busy one, and the deferral is not counted. */
export function outage(message: string, delayMs = 0): SignalError {
  return withSignal(message, { signal: 'outage', delayMs: checked(delayMs) });
}

export function readSignal(value: unknown): HandlerSignal | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  // A handler may throw or return anything, even an object whose properties throw.
  return attempt(() => (value as { [mark]?: HandlerSignal })[mark], undefined);
}

function withSignal(message: string, signal: HandlerSignal, cause?: unknown): SignalError {
  return Object.assign(new Error(message, cause === undefined ? undefined : { cause }), { [mark]: signal });
}

/** A delay beyond a year is a mistake in units. */
const maxDelayMs = 365 * 86_400_000;

function checked(delayMs: number): number {
  if (!Number.isFinite(delayMs) || delayMs < 0 || delayMs > maxDelayMs)
    throw new RangeError(`delayMs must be from 0 to a year, not ${delayMs}`);
  return delayMs;
}
