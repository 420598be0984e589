import { sleep } from '../../kernel/clock.ts';
import type { Service } from '../../kernel/service.ts';
import { createNamedLease } from '../../platform/postgres/named-lease.ts';
import type { Worker } from '../../platform/postgres/work.ts';
import type { RemovedSagas, SagaRetention } from './postgres-saga-retention.ts';

export type SagaRetentionServiceOptions = Readonly<{
  retention: SagaRetention;
  everyMs?: number;
  onRemoved: (removed: RemovedSagas) => void;
  onError: (error: unknown) => void;
}>;

/** A walk reads all that is old enough, also what stays: a long one is not begun again at once. */
const restPerWalk = 10;

/** One replica archives and removes what is over, first when it has got the lease. */
export function createSagaRetentionService(
  worker: Worker,
  { retention, everyMs = 600_000, onRemoved, onError }: SagaRetentionServiceOptions,
): Service {
  return createNamedLease(worker, {
    name: 'saga.retention',
    leaseMs: 30_000,
    async work(held) {
      while (!held.aborted) {
        const begin = worker.clock.monotonicMs();
        onRemoved(await retention.remove(held));
        await sleep(Math.max(everyMs, (worker.clock.monotonicMs() - begin) * restPerWalk), held);
      }
    },
    onError,
  });
}
