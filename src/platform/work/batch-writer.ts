import type { Clock } from '../../kernel/clock.ts';
import { remainingMs, type Lease } from '../../kernel/lease.ts';

/**
 * Writes items to the database in batches. While one batch is being written the next one gathers, so batches grow with
 * the load and a single item is written at once. When many items wait, more writers run in parallel: one writes while
 * another waits for its commit.
 */
export type BatchWriter<Item, Result> = Readonly<{
  /** Resolves with the item's result; rejects when its batch could not be written. */
  write(item: Item): Promise<Result>;
  /** Nothing waits and nothing is being written. */
  isEmpty(): boolean;
  waitingCount(): number;
  /** Renews the leases of all items that are not written yet, if `leases` is set. Call it often; it renews when due. */
  renewLeases(): Promise<void>;
}>;

export type BatchWriterOptions<Item, Result> = Readonly<{
  clock: Clock;
  /** Writes one batch. Returns one result per item, in the same order. */
  writeBatch: (items: readonly Item[]) => Promise<readonly Result[]>;
  maxItems: number;
  /** A larger item is written in a batch of its own. */
  maxBytes?: number;
  bytesOf?: (item: Item) => number;
  maxWriters: number;
  /** Another writer starts when this many items wait. With fewer, it would only make batches smaller. */
  itemsPerWriter: number;
  /** Called when a writer has run out of items. */
  onIdle?: () => void;
  leases?: BatchLeases<Item>;
}>;

/**
 * Keeps the leases of items that wait to be written: the work was finished in time, and a slow database must not turn
 * it into a failed attempt. An expired lease is renewed too: until the reaper takes the row nobody else can claim it,
 * and what the reaper has taken has another epoch.
 */
export type BatchLeases<Item> = Readonly<{
  leaseMs: number;
  leaseOf: (item: Item) => Lease;
  /** Renews what it can. `locked`: rows that somebody has locked, to be tried again soon. */
  renew: (items: readonly Item[]) => Promise<Readonly<{ locked: readonly unknown[] }>>;
}>;

/** A batch that takes longer, for example because a row is locked, no longer keeps the next batch waiting. */
const slowBatchMs = 1000;
/** A batch that could not be written for this many leases is left to the reaper. */
const maxRenewedLeases = 20;

type Entry<Item, Result> = Readonly<{
  item: Item;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
}>;

export function createBatchWriter<Item, Result>(
  options: BatchWriterOptions<Item, Result>,
): BatchWriter<Item, Result> {
  const { clock } = options;
  const waiting: Entry<Item, Result>[] = [];
  /** When each batch that is being written was started. */
  const startedAtMs = new Map<readonly Item[], number>();
  let lastStartedAtMs = 0;
  let writers = 0;

  const writeBatch = async (batch: readonly Entry<Item, Result>[]): Promise<void> => {
    const items = batch.map(({ item }) => item);
    lastStartedAtMs = clock.monotonicMs();
    startedAtMs.set(items, lastStartedAtMs);
    try {
      const results = await options.writeBatch(items);
      batch.forEach(({ resolve }, index) => resolve(results[index] as Result));
    } catch (error) {
      for (const { reject } of batch) reject(error);
    } finally {
      startedAtMs.delete(items);
    }
  };

  const runWriter = async (): Promise<void> => {
    while (waiting.length > 0) await writeBatch(waiting.splice(0, batchLength(waiting, options)));
    writers -= 1;
    options.onIdle?.();
  };

  const isWriterNeeded = (): boolean => {
    if (writers === 0) return true;
    const isSlow = startedAtMs.size > 0 && clock.monotonicMs() - lastStartedAtMs > slowBatchMs;
    return writers < options.maxWriters && (waiting.length >= options.itemsPerWriter || isSlow);
  };

  /** Everything that waits, and the batches that have not been tried for too long. */
  const unwritten = (leaseMs: number): readonly Item[] => {
    const now = clock.monotonicMs();
    const underWay = [...startedAtMs].filter(([, atMs]) => now - atMs < maxRenewedLeases * leaseMs);
    return [...underWay.flatMap(([items]) => items), ...waiting.map(({ item }) => item)];
  };

  return {
    isEmpty: () => writers === 0 && waiting.length === 0,
    waitingCount: () => waiting.length,
    renewLeases: createRenewal(clock, options.leases, unwritten),
    write: (item) =>
      new Promise((resolve, reject) => {
        waiting.push({ item, resolve, reject });
        if (!isWriterNeeded()) return;
        writers += 1;
        // Starts after this turn of the event loop, so that items that end together are written together.
        setImmediate(() => void runWriter());
      }),
  };
}

function createRenewal<Item>(
  clock: Clock,
  leases: BatchLeases<Item> | undefined,
  unwritten: (leaseMs: number) => readonly Item[],
): () => Promise<void> {
  let renewAtMs = 0;
  return async () => {
    const begin = clock.monotonicMs();
    if (leases === undefined || begin < renewAtMs) return;
    const { leaseMs, leaseOf, renew } = leases;
    const items = unwritten(leaseMs);
    // Leases of running work are renewed earlier than this, so an item that is written promptly is never renewed here.
    if (!items.some((item) => remainingMs(leaseOf(item), clock) < leaseMs / 2)) return;
    const { locked } = await renew(items);
    // A row may be locked by the batch that is being written, which may still fail.
    renewAtMs = begin + leaseMs / (locked.length === 0 ? 3 : 10);
  };
}

/** How many of the waiting items form the next batch: at least one. */
function batchLength<Item, Result>(
  waiting: readonly Entry<Item, Result>[],
  { maxItems, maxBytes = Infinity, bytesOf = () => 0 }: BatchWriterOptions<Item, Result>,
): number {
  let count = 0;
  let bytes = 0;
  for (const { item } of waiting.slice(0, maxItems)) {
    bytes += bytesOf(item);
    if (count > 0 && bytes > maxBytes) break;
    count += 1;
  }
  return count;
}
