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
  const lookAloneAtMs = new Map<string, number>();

  const claim = async (asked: Omit<PullRequest, 'looksForAlone'>): Promise<readonly PulledJob[]> => {
    const { queue } = asked;
    const looksForAlone = clock.monotonicMs() >= (lookAloneAtMs.get(queue) ?? 0);
    const { jobs, aloneIsDue } = await store.claim({ ...asked, looksForAlone });
    // Where there is one there are more: those who were under way beside it when its worker went down.
    if (looksForAlone && !aloneIsDue) {
      if (lookAloneAtMs.size >= maxRemembered) lookAloneAtMs.clear();
      lookAloneAtMs.set(queue, clock.monotonicMs() + lookForAloneEveryMs);
    }
    return jobs;
  };

  return {
    async pull(asked, { waitMs, signal }) {
      const endsAtMs = clock.monotonicMs() + waitMs;
      for (;;) {
        const jobs = await claim(asked);
        const leftMs = endsAtMs - clock.monotonicMs();
        if (jobs.length > 0 || leftMs <= 0 || signal.aborted) return jobs;
        await waitForWork(asked.queue, Math.min(leftMs, lookAgainMs), signal);
        if (signal.aborted) return [];
      }
    },
  };
}
