import type { Clock } from '../../kernel/clock.ts';
import { remainingMs } from '../../kernel/lease.ts';
import { createBatchWriter } from '../../platform/work/batch-writer.ts';
import type { EndedAttempt, SettledOrder } from './settle-orders.ts';

/** Settles attempts in batches. */
export type SettleQueue = Readonly<{
  /** Resolves when the attempt is stored; rejects when it could not be, long after its lease has expired. */
  settle(attempt: EndedAttempt): Promise<SettledOrder>;
}>;

export type SettleBatch = (
  attempts: readonly EndedAttempt[],
  until: AbortSignal,
) => Promise<readonly SettledOrder[]>;

/**
 * The ledger must learn that a request was sent even when the order has another owner by then. So settling is retried
 * for this long after the lease has expired.
 */
const lateWithinMs = 60_000;

export function createSettleQueue(settleBatch: SettleBatch, clock: Clock): SettleQueue {
  const writer = createBatchWriter<EndedAttempt, SettledOrder>({
    clock,
    async writeBatch(attempts) {
      const settled = await settleBatch(attempts, AbortSignal.timeout(retryForMs(attempts, clock)));
      const byId = new Map(settled.map((one) => [one.id, one]));
      return attempts.map(({ order }) => byId.get(order.id) ?? { id: order.id, status: null });
    },
    maxItems: 500,
    maxWriters: 2,
    itemsPerWriter: 64,
  });
  return { settle: writer.write };
}

function retryForMs(attempts: readonly EndedAttempt[], clock: Clock): number {
  const longestMs = Math.max(...attempts.map(({ order }) => remainingMs(order.lease, clock)));
  return Math.ceil(Math.max(0, longestMs) + lateWithinMs);
}
