import type { Wake } from './wake.ts';

/**
 * How a loop that found nothing to claim, and has nothing under way, waits for work. NOTIFY wakes it. Polling is the
 * backstop, for a notification that was not sent or got lost, and for rows that become due at a known time:
 *
 *   1. One short poll, during which this process is announced as idle. A row that was added too early to be notified is
 *      found by the question that follows.
 *   2. While LISTEN is connected: asks when the next row is due, waits for that time or five seconds, and asks again.
 *      It returns when a row is due, so that work which cannot be claimed (paused, limited, locked) is polled for;
 *      and after half a minute in any case, so that the claim itself has the last word.
 *
 * Without LISTEN there is only the short poll.
 */
export type DueDeps = Readonly<{
  isListening: () => boolean;
  /** Resolves with true on a notification, with false after the time. */
  waitForWork: (ms: number, signal: AbortSignal) => Promise<boolean>;
  /** Milliseconds until the next row is due, at most 0 where one is; null where none is waiting. */
  nextDueInMs: () => Promise<number | null>;
}>;

/** How long a row may stay unnoticed that was added without a notification. */
export const idlePollMs = 5000;
const maxIdlePolls = 6;

export async function waitForDue(deps: DueDeps, pollMs: number, signal: AbortSignal): Promise<void> {
  const firstMs = deps.isListening() ? Math.min(pollMs, idlePollMs) : pollMs;
  let isWoken = await deps.waitForWork(firstMs, signal);
  for (let polls = 0; polls < maxIdlePolls; polls += 1) {
    if (isWoken || signal.aborted || !deps.isListening()) return;
    const dueInMs = (await deps.nextDueInMs()) ?? Infinity;
    if (dueInMs <= 0) return;
    isWoken = await deps.waitForWork(Math.min(Math.ceil(dueInMs) + 1, idlePollMs), signal);
    if (dueInMs < idlePollMs) return;
  }
}

/** The two ways in which a loop waits for rows of its table. */
export function createWaits(wake: Wake, channel: string, nextDueInMs: DueDeps['nextDueInMs']) {
  const waitForWork = (ms: number, signal: AbortSignal): Promise<boolean> => wake.wait(channel, ms, signal);
  const deps: DueDeps = { isListening: wake.isListening, waitForWork, nextDueInMs };
  return {
    /** While work is under way: a short poll, unless a notification comes earlier. */
    waitForWork,
    /** While nothing is: may take longer, but no longer than until the next row is due. */
    waitForDue: (ms: number, signal: AbortSignal) => waitForDue(deps, ms, signal),
  };
}
