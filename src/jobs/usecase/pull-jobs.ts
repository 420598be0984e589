import type { Clock } from '../../kernel/clock.ts';
import type { PulledJob, PullRequest, PullStore } from './acting-ports.ts';

/**
 * Hands jobs to a worker outside of this process. Where there is none, its request may wait for one: it is woken when
 * one is added, and looks by itself now and then for those that become due.
 */
export type PullDeps = Readonly<{
  store: Pick<PullStore, 'claim'>;
  clock: Clock;
  waitForWork: (queue: string, ms: number, signal: AbortSignal) => Promise<void>;
}>;

export type Puller = Readonly<{
  pull(
    asked: Omit<PullRequest, 'looksForAlone'>,
    waiting: Readonly<{ waitMs: number; signal: AbortSignal }>,
  ): Promise<readonly PulledJob[]>;
}>;

const lookAgainMs = 1000;
/** To find one that must run alone, all that are due are looked at. */
const lookForAloneEveryMs = 1000;
/** Clients choose the names; what is remembered about them has an end. */
const maxRemembered = 1000;

export function createPuller({ store, clock, waitForWork }: PullDeps): Puller {
  const lookedForAlone = new Map<string, number>();

  const looksForAlone = (queue: string): boolean => {
    const now = clock.monotonicMs();
    const last = lookedForAlone.get(queue);
    if (last !== undefined && now - last < lookForAloneEveryMs) return false;
    if (lookedForAlone.size >= maxRemembered) lookedForAlone.clear();
    lookedForAlone.set(queue, now);
    return true;
  };

  return {
    async pull(asked, { waitMs, signal }) {
      const endsAtMs = clock.monotonicMs() + waitMs;
      for (;;) {
        const jobs = await store.claim({ ...asked, looksForAlone: looksForAlone(asked.queue) });
        const leftMs = endsAtMs - clock.monotonicMs();
        if (jobs.length > 0 || leftMs <= 0 || signal.aborted) return jobs;
        await waitForWork(asked.queue, Math.min(leftMs, lookAgainMs), signal);
        if (signal.aborted) return [];
      }
    },
  };
}
