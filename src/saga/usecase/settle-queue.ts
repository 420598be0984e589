import type { SagaSettle, SagaStore, SettleResult } from './ports.ts';

/**
 * Settles the steps of many sagas together: while one batch is written, the next one gathers. Where much waits there
 * are several writers: one writes while others wait for their commits. A batch is bounded by number and by size.
 */
export type SettleQueue = Readonly<{
  /** `bytes`: about as many are written with it. */
  settle(one: SagaSettle, bytes: number): Promise<QueuedResult>;
}>;

/** `unclear`: nobody knows whether it was written. */
export type QueuedResult = SettleResult | Readonly<{ outcome: 'unclear'; error: unknown }>;

type Waiting = Readonly<{ one: SagaSettle; bytes: number; resolve: (result: QueuedResult) => void }>;

const maxBatch = 250;
const maxBatchBytes = 4 * 1024 * 1024;
const mostWriters = 3;
const worthAnotherWriter = 32;

export function createSettleQueue(store: Pick<SagaStore, 'settle'>): SettleQueue {
  const waiting: Waiting[] = [];
  let writers = 0;

  /** One that is larger than a batch may be is a batch of its own. */
  const nextBatch = (): readonly Waiting[] => {
    let count = 0;
    for (let bytes = 0; count < Math.min(waiting.length, maxBatch); count += 1) {
      bytes += waiting[count]?.bytes ?? 0;
      if (count > 0 && bytes > maxBatchBytes) break;
    }
    return waiting.splice(0, count);
  };

  const writeBatch = async (batch: readonly Waiting[]): Promise<void> => {
    try {
      const results = await store.settle(batch.map(({ one }) => one));
      batch.forEach(({ resolve }, i) => resolve(results[i] ?? { outcome: 'stale' }));
    } catch (error) {
      for (const { resolve } of batch) resolve({ outcome: 'unclear', error });
    }
  };

  const writeAll = async (): Promise<void> => {
    while (waiting.length > 0) await writeBatch(nextBatch());
    writers -= 1;
  };

  return {
    settle: (one, bytes) =>
      new Promise((resolve) => {
        waiting.push({ one, bytes, resolve });
        if (writers === 0 || (writers < mostWriters && waiting.length >= worthAnotherWriter)) {
          writers += 1;
          // What is decided in the same moment is written together.
          setImmediate(() => void writeAll());
        }
      }),
  };
}
