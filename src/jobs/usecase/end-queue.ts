import type { Clock } from '../../kernel/clock.ts';
import { remainingMs } from '../../kernel/lease.ts';
import type { JobEnd, JobStore } from './ports.ts';

/**
 * Writes down how attempts ended, many at a time: while one batch is on its way to the database the next one gathers,
 * and where more than a batch has gathered a second one goes beside it.
 */
export type EndQueue = Readonly<{
  add(end: JobEnd): void;
  isEmpty(): boolean;
  /** So many wait to be written down that nothing more should be begun. */
  isFull(): boolean;
  /**
   * Prolongs the leases of what has been on its way for a while: it ended in time, and a database that was away or slow
   * makes no failure of it. Also where they are over: until the reaper takes such a job it is nobody else's, and
   * whatever it has taken has another epoch. Not for ever: what could not be written down for many leases is left to
   * the reaper, which counts.
   */
  renewLeases(): Promise<void>;
}>;

export type EndQueueDeps = Readonly<{
  store: Pick<JobStore, 'settle' | 'renew'>;
  clock: Clock;
  queue: string;
  leaseMs: number;
  /** Not of those that were never begun. */
  onEnd: (end: JobEnd, status: string | null) => void;
  onError: (error: unknown) => void;
  /** A batch has been written down. */
  onChange: () => void;
  /** Until then it is tried again while the database is away. */
  until: AbortSignal;
}>;

const batchSize = 500;
/** Of results, in characters. */
const batchText = 4 * 1024 * 1024;
const batchesAtOnce = 2;
/** A batch that is on its way for longer, behind a locked row perhaps, does not keep the next ones waiting. */
const slowBatchMs = 1000;
const mostWaiting = 5000;
const mostLeases = 20;

export function createEndQueue(deps: EndQueueDeps): EndQueue {
  const { store, clock, leaseMs } = deps;
  const ended: JobEnd[] = [];
  /** The batches that are on their way. */
  const written = new Map<readonly JobEnd[], number>();
  let writtenAtMs = 0;
  let renewAtMs = 0;
  let writers = 0;
  let isScheduled = false;

  const writeBatch = async (batch: readonly JobEnd[]): Promise<void> => {
    writtenAtMs = clock.monotonicMs();
    written.set(batch, writtenAtMs);
    try {
      const settled = await store.settle(deps.queue, batch, deps.until);
      const statuses = new Map(settled.map((one) => [one.jobId, one.status]));
      for (const end of batch) {
        const status = statuses.get(end.job.jobId);
        if (status !== undefined && end.end !== 'unstarted') deps.onEnd(end, status);
      }
    } catch (error) {
      // Their leases run out, and the reaper ends them.
      deps.onError(error);
    } finally {
      written.delete(batch);
    }
  };

  const write = async (): Promise<void> => {
    isScheduled = false;
    writers += 1;
    while (ended.length > 0) await writeBatch(ended.splice(0, batchLength(ended)));
    writers -= 1;
    deps.onChange();
  };

  return {
    isEmpty: () => writers === 0 && ended.length === 0,
    isFull: () => ended.length >= mostWaiting,
    async renewLeases() {
      const begin = clock.monotonicMs();
      if (begin < renewAtMs) return;
      const inTime = [...written].filter(([, atMs]) => begin - atMs < mostLeases * leaseMs);
      const jobs = [...inTime.flatMap(([batch]) => batch), ...ended].map(({ job }) => job);
      // Running jobs are renewed earlier: what is written down without delay never comes so far.
      if (!jobs.some(({ lease }) => remainingMs(lease, clock) < leaseMs / 2)) return;
      const { locked } = await store.renew(jobs, leaseMs);
      // What is being written this moment may yet come back.
      renewAtMs = begin + leaseMs / (locked.length === 0 ? 3 : 10);
    },
    add(end) {
      ended.push(end);
      if (isScheduled) return;
      const isWorthTwo = ended.length >= batchSize || clock.monotonicMs() - writtenAtMs > slowBatchMs;
      const mayWrite = writers === 0 || (writers < batchesAtOnce && isWorthTwo);
      if (!mayWrite) return;
      isScheduled = true;
      // What ends in the same turn goes with it.
      setImmediate(() => void write());
    },
  };
}

/** How many go together: one at least, and not more text than one statement should carry. */
function batchLength(ended: readonly JobEnd[]): number {
  let text = 0;
  let count = 0;
  for (const end of ended) {
    if (end.end === 'completed') text += end.result?.length ?? 0;
    if (count === batchSize || (count > 0 && text > batchText)) break;
    count += 1;
  }
  return count;
}
