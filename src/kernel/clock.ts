import { setTimeout as wait } from 'node:timers/promises';

/** The clock of this process; tests pass their own. Lease times in the database never come from it. */
export type Clock = Readonly<{
  now(): Date;
  /** Never goes back and never jumps: for the remaining time of a lease or a deadline. */
  monotonicMs(): number;
}>;

export const systemClock: Clock = {
  now: () => new Date(),
  monotonicMs: () => performance.now(),
};

/** Waits; an abort ends the wait early and is not an error. */
export async function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  try {
    await wait(ms, undefined, signal ? { signal, ref: true } : { ref: true });
  } catch (error) {
    if (!signal?.aborted) throw error;
  }
}

/** Resolves when the signal aborts, at once if it is aborted. */
export async function onceAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
