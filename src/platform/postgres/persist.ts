import { backoffMs, type Backoff } from '../../kernel/backoff.ts';
import { sleep } from '../../kernel/clock.ts';
import { codeOf } from '../../kernel/errors.ts';
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
  /**
   * A statement that takes too long, again and again, may do so because of one item, whose row is locked or slow to
   * write: the batch is halved then too. That one is tried a few times more, and comes out as the error.
   */
  isolatesSlow?: boolean;
}>;

/** A statement or a lock took too long. */
const slow: ReadonlySet<string> = new Set(['57014', '55P03']);
const slowTries = 3;

const backoff: Backoff = { initialMs: 25, maxMs: 2000, jitter: 0.2 };

export async function persist<Item>(items: readonly Item[], how: Persist<Item>): Promise<void> {
  if (items.length === 0) return;
  try {
    await againUntil(() => how.store(items), how);
  } catch (error) {
    const [only] = items;
    if (how.isolatesSlow === true && isSlow(error) && items.length > 1 && !how.until.aborted)
      return persistHalves(items, how, { isOrdered: false });
    if (troubleOf(error) !== 'data') throw error;
    if (items.length === 1 && only !== undefined) return againUntil(() => how.storeCulprit(only, error), how);
    return persistHalves(items, how, { isOrdered: true });
  }
}

/** In order, unless one half may take long: nothing of the other waits for it then. */
async function persistHalves<Item>(
  items: readonly Item[],
  how: Persist<Item>,
  { isOrdered }: Readonly<{ isOrdered: boolean }>,
): Promise<void> {
  const middle = items.length >> 1;
  const failures: unknown[] = [];
  // What is wrong with one half never keeps the other from being stored.
  const store = (half: readonly Item[]): Promise<unknown> =>
    persist(half, how).catch((failure: unknown) => failures.push(failure));
  const first = store(items.slice(0, middle));
  if (isOrdered) await first;
  await Promise.all([first, store(items.slice(middle))]);
  if (failures.length > 0) throw failures[0];
}

function isSlow(error: unknown): boolean {
  return slow.has(codeOf(error) ?? '');
}

/** Repeats what failed through no fault of its values; gives up with the last error when `until` aborts. */
async function againUntil<T>(
  run: () => Promise<T>,
  how: Pick<Persist<never>, 'until' | 'onRetry' | 'isolatesSlow'>,
): Promise<T> {
  for (let failures = 1, slowOnes = 1; ; failures += 1) {
    try {
      return await run();
    } catch (error) {
      if (troubleOf(error) !== 'again' || how.until.aborted) throw error;
      if (how.isolatesSlow === true && isSlow(error) && slowOnes++ >= slowTries) throw error;
      how.onRetry?.(error);
      await sleep(backoffMs(backoff, failures), how.until);
      if (how.until.aborted) throw error;
    }
  }
}
