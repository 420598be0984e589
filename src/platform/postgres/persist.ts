import { backoffMs, type Backoff } from '../../kernel/backoff.ts';
import { sleep } from '../../kernel/clock.ts';
import { troubleOf } from './sqlstate.ts';

/**
 * Stores items so that one poisoned item never keeps its neighbours from being stored, and a database that is
 * away for a moment costs nothing but time. A batch that fails on its data is halved down to the culprit,
 * which goes to `storeCulprit`. Deadlocks, lost connections and restarts are tried again until `until` aborts.
 * Both callbacks must be safe to repeat: an answer that was lost may have been a commit.
 */
export type Persist<Item> = Readonly<{
  store: (items: readonly Item[]) => Promise<void>;
  storeCulprit: (item: Item, error: unknown) => Promise<void>;
  until: AbortSignal;
  onRetry?: (error: unknown) => void;
}>;

const backoff: Backoff = { initialMs: 25, maxMs: 2000, jitter: 0.2 };

export async function persist<Item>(items: readonly Item[], how: Persist<Item>): Promise<void> {
  if (items.length === 0) return;
  try {
    await againUntil(() => how.store(items), how);
  } catch (error) {
    if (troubleOf(error) !== 'data') throw error;
    const [only] = items;
    if (items.length === 1 && only !== undefined) return againUntil(() => how.storeCulprit(only, error), how);
    const middle = items.length >> 1;
    const halves = [items.slice(0, middle), items.slice(middle)];
    const failures: unknown[] = [];
    // What is wrong with one half never keeps the other from being stored.
    for (const half of halves) await persist(half, how).catch((failure: unknown) => failures.push(failure));
    if (failures.length > 0) throw failures[0];
  }
}

/** Repeats what failed through no fault of its values; gives up with the last error when `until` aborts. */
async function againUntil<T>(
  run: () => Promise<T>,
  how: Readonly<{ until: AbortSignal; onRetry?: ((error: unknown) => void) | undefined }>,
): Promise<T> {
  for (let failures = 1; ; failures += 1) {
    try {
      return await run();
    } catch (error) {
      if (troubleOf(error) !== 'again' || how.until.aborted) throw error;
      how.onRetry?.(error);
      await sleep(backoffMs(backoff, failures), how.until);
      if (how.until.aborted) throw error;
    }
  }
}
