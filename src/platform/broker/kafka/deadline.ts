import { AppError } from '../../../kernel/errors.ts';

/** A point in time after which a call times out, and a signal that aborts it earlier. */
export type Deadline = Readonly<{ atMs: number; signal: AbortSignal | undefined }>;

export const deadlineIn = (timeoutMs: number, signal?: AbortSignal): Deadline => ({
  atMs: performance.now() + timeoutMs,
  signal,
});

/** The earlier of the two, with the signal of the first. */
export const noLaterThan = (deadline: Deadline, timeoutMs: number): Deadline => ({
  atMs: Math.min(deadline.atMs, performance.now() + timeoutMs),
  signal: deadline.signal,
});

/** Halfway to the deadline, but not before that time has passed if the deadline allows it. */
export const halfwayTo = (deadline: Deadline, atLeastMs: number): Deadline =>
  noLaterThan(deadline, Math.max(atLeastMs, (deadline.atMs - performance.now()) / 2));

export const hasPassed = (deadline: Deadline): boolean =>
  deadline.signal?.aborted === true || performance.now() >= deadline.atMs;

/**
 * Waits for the work until the deadline. Does not stop the work. Rejects with the signal's reason, or with
 * SYS_BROKER_TIMEOUT.
 */
export async function within<T>(deadline: Deadline, what: string, work: Promise<T>): Promise<T> {
  const { signal } = deadline;
  const gaveUp = Promise.withResolvers<never>();
  const onAbort = (): void => gaveUp.reject(signal?.reason);
  const onTimeout = (): void =>
    gaveUp.reject(
      new AppError('SYS_BROKER_TIMEOUT', 'unavailable', `the broker did not answer in time: ${what}`),
    );
  const timer = setTimeout(onTimeout, Math.max(0, deadline.atMs - performance.now()));
  if (signal?.aborted) onAbort();
  else signal?.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([gaveUp.promise, work]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
  }
}
