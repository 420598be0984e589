import { onceAborted, sleep, type Clock } from '../../kernel/clock.ts';
import type { Service } from '../../kernel/service.ts';
import type { SoloGate } from '../../kernel/solo-gate.ts';
import { createClaimRounds } from './claim-rounds.ts';
import { createEndQueue } from './end-queue.ts';
import { createHeldLeases } from './held-leases.ts';
import { createJobSlots, type Handler } from './job-slots.ts';
import type { JobEnd, JobStore } from './ports.ts';
import { createWorkerChange } from './worker-change.ts';

export type { Handler };

export type QueueWorkerOptions = Readonly<{
  queue: string;
  handler: Handler;
  /** How many handlers run at once. */
  concurrency: number;
  /** How many jobs at most are claimed beyond those that run; none of a queue that is limited over all processes. */
  maxPrefetch: number;
  timeoutMs: () => number;
  leaseMs: number;
  pollMs: number;
}>;

export type QueueWorkerDeps = Readonly<{
  store: JobStore;
  clock: Clock;
  /** Of all queues of the process: what has to run alone waits for all of them. */
  solo: SoloGate;
  isLimited: (queue: string) => boolean;
  waitForWork: (queue: string, ms: number, signal: AbortSignal) => Promise<void>;
  onEnd: (end: JobEnd, status: string | null) => void;
  onError: (what: string, error: unknown) => void;
}>;

export type QueueWorker = Service &
  Readonly<{
    /** How many handlers run. */
    running(): number;
    /** Handlers that were told to stop and did not. At `concurrency` of them nothing more is claimed. */
    zombies(): number;
    /** When it last looked for jobs or had no room for any, on the monotonic clock; null while it does not work. */
    lookedAtMs(): number | null;
    /** Jobs of the queue were cancelled: looks at once whether some of ours are among them. */
    checkLeases(): void;
  }>;

const checkEveryMs = 100;

/**
 * Runs the jobs of one queue: claims in batches what there is room for, hands each to the handler, and settles in
 * batches what has ended, all at the same time. Leases are renewed while jobs run or wait here; a job whose lease is
 * lost is told to stop, and what it comes to is dropped. A handler that outstays its timeout has failed, whatever it
 * does later. A job that took its worker down before and has one attempt left is claimed when nothing else of the
 * process is, and has it for itself.
 */
export function createQueueWorker(deps: QueueWorkerDeps, options: QueueWorkerOptions): QueueWorker {
  const { store, clock } = deps;
  const { queue, leaseMs } = options;
  const stopping = new AbortController();
  /** The stop's time is over: what could not be written down by then is left to the reaper. */
  const givingUp = new AbortController();
  const change = createWorkerChange();
  const ends = createEndQueue({
    store,
    clock,
    queue,
    leaseMs,
    onEnd: deps.onEnd,
    onError: (error) => deps.onError('settling', error),
    onChange: change.happened,
    until: givingUp.signal,
  });
  const slots = createJobSlots(
    {
      store,
      clock,
      ends,
      change,
      renewNow: ({ job }) => leases.renew([job]),
      onError: (error) => deps.onError('reading a payload', error),
      stopping: stopping.signal,
    },
    options,
  );
  const leases = createHeldLeases({ store, clock, slots, leaseMs });
  const rounds = createClaimRounds(
    {
      ...deps,
      slots,
      ends,
      change,
      onError: (error) => deps.onError('claiming', error),
      stopping: stopping.signal,
    },
    options,
  );
  let loops: Promise<unknown> | null = null;

  const isWorking = (): boolean => !stopping.signal.aborted || slots.running() > 0;

  const claimUntilStopped = async (): Promise<void> => {
    await rounds.run();
    slots.giveBack();
  };

  /** Apart from the renewals: one that hangs must not keep a lease or a timeout from ending. */
  const watchTimes = async (): Promise<void> => {
    while (isWorking()) {
      slots.checkTimes();
      await sleep(checkEveryMs);
    }
  };

  const keepLeases = async (): Promise<void> => {
    const failed = (error: unknown): void => deps.onError('renewing leases', error);
    while (isWorking() || (!ends.isEmpty() && !givingUp.signal.aborted)) {
      await Promise.all([leases.renewDue().catch(failed), ends.renewLeases().catch(failed)]);
      await leases.saveProgress().catch((error: unknown) => deps.onError('saving progress', error));
      await sleep(checkEveryMs);
    }
  };

  return {
    name: `jobs ${queue}`,
    running: slots.running,
    zombies: slots.zombies,
    lookedAtMs: () => (loops === null || stopping.signal.aborted ? null : rounds.lookedAtMs()),
    checkLeases: leases.checkAll,
    async start() {
      loops = Promise.all([claimUntilStopped(), watchTimes(), keepLeases()]);
    },
    async stop(deadline) {
      stopping.abort();
      change.happened();
      void onceAborted(deadline).then(() => givingUp.abort());
      await Promise.race([loops, onceAborted(deadline)]);
      while (!ends.isEmpty() && !deadline.aborted) await change.wait(0, checkEveryMs);
    },
  };
}
