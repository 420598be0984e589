import type { Clock } from '../../kernel/clock.ts';
import { messageOf } from '../../kernel/errors.ts';
import { remainingMs } from '../../kernel/lease.ts';
import { averageOf } from './claim-ahead.ts';
import type { EndQueue } from './end-queue.ts';
import { endOf, endOfError } from './handler-end.ts';
import { JobRun, type JobContext, type RunDeps } from './job-run.ts';
import type { ClaimedJob, JobEnd, JobStore } from './ports.ts';
import { createWaitingJobs, type WaitingJobs } from './waiting-jobs.ts';
import type { WorkerChange } from './worker-change.ts';

export type Handler = (job: ClaimedJob, context: JobContext) => unknown;

/** The claimed jobs of a worker: those that have a slot and run, and those that wait for one. */
export type JobSlots = Readonly<{
  /** Lets them run, or wait until a slot is free. */
  take(jobs: readonly ClaimedJob[]): void;
  /** How many run or wait. */
  held(): number;
  running(): number;
  /** Handlers that were told to stop and did not; their slots are given to others. */
  zombies(): number;
  /** As many as there are slots: whatever is begun now may never end either. */
  isFullOfZombies(): boolean;
  /** How long a job takes; null before the first one has ended. */
  averageMs(): number | null;
  /** Those whose end counts. */
  runs(): readonly JobRun[];
  waiting: Pick<WaitingJobs, 'all' | 'update'>;
  /** Ends what has outstayed its time; frees the slot of what does not stop when it is told to. */
  checkTimes(): void;
  /** Gives back what was not started. */
  giveBack(): void;
}>;

export type JobSlotsDeps = Readonly<{
  store: Pick<JobStore, 'readPayload'>;
  clock: Clock;
  renewNow: RunDeps['renewNow'];
  ends: Pick<EndQueue, 'add'>;
  change: Pick<WorkerChange, 'left' | 'happened'>;
  /** A payload could not be read. */
  onError: (error: unknown) => void;
  /** Nothing more is started then. */
  stopping: AbortSignal;
}>;

export type JobSlotsOptions = Readonly<{
  handler: Handler;
  concurrency: number;
  timeoutMs: () => number;
}>;

/** How long a handler that was told to stop keeps its slot. */
const graceMs = 5000;

export function createJobSlots(deps: JobSlotsDeps, options: JobSlotsOptions): JobSlots {
  const { clock, ends, change, stopping } = deps;
  const { handler, concurrency } = options;
  const waiting = createWaitingJobs();
  /** Also those that were told to stop and still have their slot: the same job may run here again beside them. */
  const running = new Set<JobRun>();
  let zombies = 0;
  let averageMs: number | null = null;

  const held = (): number => waiting.count() + running.size;

  const leaveSlot = (run: JobRun): void => {
    running.delete(run);
    startNext();
    change.left(held());
  };

  /** The job with its payload; or how it ends where it is not handed to the handler after all. */
  const readWhole = async (run: JobRun): Promise<ClaimedJob | JobEnd> => {
    const { job } = run;
    try {
      const read = await deps.store.readPayload(job);
      // Reading may have taken long: what must not begin any more goes back.
      const mayBegin = !stopping.aborted && remainingMs(run.job.lease, clock) > 0;
      if (read !== null && mayBegin && run.givenUpAtMs() === null) return { ...run.job, ...read };
      return { job, startedAt: null, end: 'unstarted' };
    } catch (error) {
      deps.onError(error);
      const reason = `its payload could not be read: ${messageOf(error)}`;
      return { job, startedAt: null, end: 'deferred', delayMs: 0, reason, isBusy: true };
    }
  };

  const handle = async (run: JobRun): Promise<JobEnd> => {
    const job = run.job.isPayloadApart ? await readWhole(run) : run.job;
    if ('end' in job) return job;
    run.begin();
    try {
      return endOf(run, await handler(job, run.context));
    } catch (error) {
      return endOfError(run, error);
    }
  };

  const start = async (job: ClaimedJob): Promise<void> => {
    const run = new JobRun(job, deps);
    running.add(run);
    const end = await handle(run);
    averageMs = averageOf(averageMs, run.ranMs);
    if (run.isZombie()) {
      zombies -= 1;
      return change.happened();
    }
    if (run.givenUpAtMs() === null) ends.add(end);
    leaveSlot(run);
  };

  function startNext(): void {
    while (running.size < concurrency && !stopping.aborted) {
      const job = waiting.take();
      if (job === undefined) return;
      // One whose lease is over may be somebody else's by now; the reaper ends the attempt.
      if (remainingMs(job.lease, clock) > 0) void start(job);
    }
  }

  const timeOut = (run: JobRun, timeoutMs: number): void => {
    const error = `timeout: no end within ${timeoutMs} ms`;
    run.giveUp(new Error(error));
    const { job, startedAt } = run;
    ends.add({ job, startedAt, end: 'failed', error, isRetryable: true, retryAfterMs: null });
  };

  return {
    held,
    running: () => running.size,
    zombies: () => zombies,
    isFullOfZombies: () => zombies >= concurrency,
    averageMs: () => averageMs,
    runs: () => [...running].filter((run) => run.givenUpAtMs() === null),
    waiting,
    take(jobs) {
      waiting.add(jobs);
      startNext();
    },
    checkTimes() {
      const now = clock.monotonicMs();
      const timeoutMs = options.timeoutMs();
      for (const run of running) {
        const givenUpAtMs = run.givenUpAtMs();
        if (givenUpAtMs === null) {
          if (run.ranMs > timeoutMs) timeOut(run, timeoutMs);
          else if (remainingMs(run.job.lease, clock) <= 0)
            run.giveUp(new Error('the lease of the job is over: it could not be renewed in time'));
        } else if (now - givenUpAtMs > graceMs) {
          run.becomeZombie();
          zombies += 1;
          leaveSlot(run);
        }
      }
    },
    giveBack() {
      for (let job = waiting.take(); job !== undefined; job = waiting.take())
        ends.add({ job, startedAt: null, end: 'unstarted' });
    },
  };
}
