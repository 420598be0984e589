import { backoffMs, type Backoff } from '../../kernel/backoff.ts';
import { sleep } from '../../kernel/clock.ts';
import { codeOf } from '../../kernel/errors.ts';
import { troubleOf } from '../postgres/sqlstate.ts';

/**
 * Stores a batch so that one bad item never keeps its neighbours from being stored. A batch that fails on its data is
 * halved down to the bad item, which goes to `storeBad`. Deadlocks, lost connections and restarts are retried until
 * `until` aborts. Both callbacks must be safe to repeat: a lost answer may have been a commit.
 */
export type StoreBatchOptions<Item> = Readonly<{
  store: (items: readonly Item[]) => Promise<void>;
  storeBad: (item: Item, error: unknown) => Promise<void>;
  until: AbortSignal;
  onRetry?: (error: unknown) => void;
  /** Whether one of the items is the cause. By default: SQLSTATE class 22, 23 or 54. */
  isBadData?: (error: unknown) => boolean;
  /** Whether the same statement may be sent again. By default: deadlocks, timeouts, outages. */
  isRetryable?: (error: unknown) => boolean;
  /**
   * Halves a batch also when it times out repeatedly: one item may be the cause, because its row is locked or slow to
   * write. The promise rejects with the timeout of that item after a few more tries.
   */
  isolatesSlow?: boolean;
}>;

const timeoutCodes: ReadonlySet<string> = new Set([
  '57014', // statement timeout
  '55P03', // lock timeout
]);
/** A batch that times out more often than this is halved, as if its data were bad. */
const maxTimeouts = 3;

const backoff: Backoff = { initialMs: 25, maxMs: 2000, jitter: 0.2 };

export async function storeBatch<Item>(
  items: readonly Item[],
  options: StoreBatchOptions<Item>,
): Promise<void> {
  if (items.length === 0) return;
  const { isBadData = hasDataError } = options;
  try {
    await retry(() => options.store(items), options);
  } catch (error) {
    const [only] = items;
    if (options.isolatesSlow === true && isTimeout(error) && items.length > 1 && !options.until.aborted)
      return storeHalves(items, options, { isOrdered: false });
    if (!isBadData(error)) throw error;
    if (items.length === 1 && only !== undefined) return retry(() => options.storeBad(only, error), options);
    return storeHalves(items, options, { isOrdered: true });
  }
}

/** In order, unless one half may be slow: then the other half does not wait for it. */
async function storeHalves<Item>(
  items: readonly Item[],
  options: StoreBatchOptions<Item>,
  { isOrdered }: Readonly<{ isOrdered: boolean }>,
): Promise<void> {
  const middle = items.length >> 1;
  const failures: unknown[] = [];
  // A failure of one half never keeps the other from being stored.
  const store = (half: readonly Item[]): Promise<unknown> =>
    storeBatch(half, options).catch((failure: unknown) => failures.push(failure));
  const first = store(items.slice(0, middle));
  if (isOrdered) await first;
  await Promise.all([first, store(items.slice(middle))]);
  if (failures.length > 0) throw failures[0];
}

function hasDataError(error: unknown): boolean {
  return troubleOf(error) === 'data';
}

function isTimeout(error: unknown): boolean {
  return timeoutCodes.has(codeOf(error) ?? '');
}

/** Retries with backoff; throws the last error when it is not retryable, or when `until` aborts. */
async function retry(
  run: () => Promise<void>,
  options: Omit<StoreBatchOptions<never>, 'store' | 'storeBad' | 'isBadData'>,
): Promise<void> {
  const { isRetryable = (error) => troubleOf(error) === 'again', until } = options;
  for (let failures = 1, timeouts = 1; ; failures += 1) {
    try {
      return await run();
    } catch (error) {
      if (!isRetryable(error) || until.aborted) throw error;
      if (options.isolatesSlow === true && isTimeout(error) && timeouts++ >= maxTimeouts) throw error;
      options.onRetry?.(error);
      await sleep(backoffMs(backoff, failures), until);
      if (until.aborted) throw error;
    }
  }
}
