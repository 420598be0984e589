import { sleep } from '../../kernel/clock.ts';
import type { Service } from '../../kernel/service.ts';
import { createNamedLease } from './named-lease.ts';
import type { Worker } from './work.ts';

export type RetentionServiceOptions<Removed> = Readonly<{
  /** Of the lease: `jobs.retention`. */
  name: string;
  retention: Readonly<{ remove(held: AbortSignal): Promise<Removed> }>;
  everyMs?: number;
  onRemoved: (removed: Removed) => void;
  onError: (error: unknown) => void;
}>;

/** A walk reads all that is old enough, also what stays: a long one is not begun again at once. */
const restPerWalk = 10;

/** One replica removes what is over, first when it has got the lease. */
export function createRetentionService<Removed>(
  worker: Worker,
  { name, retention, everyMs = 600_000, onRemoved, onError }: RetentionServiceOptions<Removed>,
): Service {
  return createNamedLease(worker, {
    name,
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
