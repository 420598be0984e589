import type { Clock } from '../../kernel/clock.ts';
import { remainingMs } from '../../kernel/lease.ts';
import type { Attempt, DeliveryStore, SettledAttempt } from './ports.ts';

/**
 * Settles what has ended, as many as there are at once: while one batch is written, the next one gathers. So the
 * more there is to do, the larger the batches, and a single order waits for nobody. Where much waits there are two
 * writers: one commits while the other writes.
 */
export type SettleQueue = Readonly<{
  /** Resolves when it is written; rejects when it could not be, long after its lease was over. */
  settle(attempt: Attempt): Promise<SettledAttempt>;
}>;

type Waiting = Readonly<{
  attempt: Attempt;
  resolve: (settled: SettledAttempt) => void;
  reject: (error: unknown) => void;
}>;

const maxBatch = 500;
/** With fewer of them a second writer would only make the batches smaller. */
const worthASecondWriter = 64;

/**
 * That an order has reached the outside is a fact, which the ledger has to learn even when the order is somebody
 * else's by then. So a database that comes back after the lease is told all the same.
 */
const lateWithinMs = 60_000;

export function createSettleQueue(store: Pick<DeliveryStore, 'settle'>, clock: Clock): SettleQueue {
  const waiting: Waiting[] = [];
  let writers = 0;

  const writeAll = async (): Promise<void> => {
    while (waiting.length > 0) {
      const batch = waiting.splice(0, maxBatch);
      try {
        const settled = await store.settle(
          batch.map(({ attempt }) => attempt),
          whileItMatters(batch, clock),
        );
        const byId = new Map(settled.map((one) => [one.id, one]));
        for (const { attempt, resolve } of batch)
          resolve(byId.get(attempt.order.id) ?? { id: attempt.order.id, status: null });
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    writers -= 1;
  };

  return {
    settle(attempt) {
      return new Promise((resolve, reject) => {
        waiting.push({ attempt, resolve, reject });
        // What ends in the same moment is written together.
        if (writers === 0 || (writers === 1 && waiting.length >= worthASecondWriter)) {
          writers += 1;
          setImmediate(() => void writeAll());
        }
      });
    },
  };
}

function whileItMatters(batch: readonly Waiting[], clock: Clock): AbortSignal {
  const longest = Math.max(...batch.map(({ attempt }) => remainingMs(attempt.order.lease, clock)));
  return AbortSignal.timeout(Math.ceil(Math.max(0, longest) + lateWithinMs));
}
