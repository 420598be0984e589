import type { Clock } from '../../kernel/clock.ts';
import type { JobStore } from './ports.ts';

export type ReaperDeps = Readonly<{
  store: Pick<JobStore, 'reap'>;
  clock: Clock;
  /** Fails while the database is away. */
  ask: () => Promise<unknown>;
}>;

/** Longer than whoever could not write down what has ended waits until it tries again. */
const graceMs = 3000;

/**
 * Ends the attempts of lost workers; how many. While the database was away nobody could renew a lease or write down an
 * end: when it is back, all of them get a moment to do so before anything is taken from them.
 */
export function createReaper({ store, clock, ask }: ReaperDeps): () => Promise<number> {
  let wasAway = false;
  // The database may have been away until this moment.
  let reapFromMs = clock.monotonicMs() + graceMs;
  const reap = async (): Promise<number> => {
    if (!wasAway) return store.reap();
    await ask();
    wasAway = false;
    reapFromMs = clock.monotonicMs() + graceMs;
    return 0;
  };
  return async () => {
    if (clock.monotonicMs() < reapFromMs) return 0;
    try {
      return await reap();
    } catch (error) {
      wasAway = true;
      throw error;
    }
  };
}
