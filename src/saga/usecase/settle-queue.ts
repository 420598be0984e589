import type { SagaSettle, SagaStore, SettleResult } from './ports.ts';

/**
 * Settles the steps of many sagas together: while one batch is written, the next one gathers. Where much waits there
 * are two writers: one commits while the other writes.
 */
export type SettleQueue = Readonly<{
  /** Rejects where nobody knows whether it was written. */
  settle(one: SagaSettle): Promise<SettleResult>;
}>;

type Waiting = Readonly<{
  one: SagaSettle;
  resolve: (result: SettleResult) => void;
  reject: (error: unknown) => void;
}>;

const maxBatch = 250;
const worthASecondWriter = 32;

export function createSettleQueue(store: Pick<SagaStore, 'settle'>): SettleQueue {
  const waiting: Waiting[] = [];
  let writers = 0;

  const writeBatch = async (batch: readonly Waiting[]): Promise<void> => {
    try {
      const results = await store.settle(batch.map(({ one }) => one));
      batch.forEach(({ resolve }, i) => resolve(results[i] ?? { outcome: 'stale' }));
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  };

  const writeAll = async (): Promise<void> => {
    while (waiting.length > 0) await writeBatch(waiting.splice(0, maxBatch));
    writers -= 1;
  };

  return {
    settle: (one) =>
      new Promise((resolve, reject) => {
        waiting.push({ one, resolve, reject });
        if (writers === 0 || (writers === 1 && waiting.length >= worthASecondWriter)) {
          writers += 1;
          // What is decided in the same moment is written together.
          setImmediate(() => void writeAll());
        }
      }),
  };
}
