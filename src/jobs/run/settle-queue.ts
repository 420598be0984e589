import { createBatchWriter, type BatchWriter } from '../../platform/work/batch-writer.ts';
import { renew } from '../../platform/work/work.ts';
import { jobs, type WorkDeps } from '../jobs-table.ts';
import { settleJobs, type Settlement } from '../settle-jobs.ts';

export type SettleQueue = BatchWriter<Settlement, void>;

export type SettleQueueOptions = Readonly<{
  queue: string;
  leaseMs: number;
  /** Not called for jobs that were never started. */
  onSettled: (settlement: Settlement, status: string | null) => void;
  onError: (error: unknown) => void;
  /** A writer has settled everything that waited. */
  onIdle: () => void;
  /** While the database is unavailable, settles are retried until this aborts. */
  until: AbortSignal;
}>;

const maxBatchItems = 500;
/** Of results and errors, in characters. */
const maxBatchText = 4 * 1024 * 1024;

/** Settles finished jobs of one queue in batches, and renews their leases until they are settled. */
export function createSettleQueue(deps: WorkDeps, options: SettleQueueOptions): SettleQueue {
  const { queue, leaseMs } = options;

  const settle = async (batch: readonly Settlement[]): Promise<void> => {
    const settled = await settleJobs(deps, queue, batch, options.until);
    const statuses = new Map(settled.map((one) => [one.jobId, one.status]));
    for (const settlement of batch) {
      const status = statuses.get(settlement.job.jobId);
      if (status !== undefined && settlement.outcome !== 'unstarted') options.onSettled(settlement, status);
    }
  };

  return createBatchWriter<Settlement, void>({
    clock: deps.worker.clock,
    async writeBatch(batch) {
      // The leases of jobs that could not be settled expire, and the reaper ends the attempts.
      await settle(batch).catch(options.onError);
      return [];
    },
    maxItems: maxBatchItems,
    maxBytes: maxBatchText,
    bytesOf: textLength,
    maxWriters: 2,
    itemsPerWriter: maxBatchItems,
    onIdle: options.onIdle,
    leases: {
      leaseMs,
      leaseOf: ({ job }) => job.lease,
      renew: (batch) =>
        renew(
          deps.worker,
          jobs,
          batch.map(({ job }) => job),
          { keyOf: ({ jobId }) => jobId, leaseMs },
        ),
    },
  });
}

function textLength(one: Settlement): number {
  if (one.outcome === 'completed') return one.result?.length ?? 0;
  return one.outcome === 'failed' ? one.error.length + (one.origin?.stack?.length ?? 0) : 0;
}
