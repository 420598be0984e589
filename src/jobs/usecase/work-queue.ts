import { onceAborted, sleep, type Clock } from '../../kernel/clock.ts';
import { messageOf } from '../../kernel/errors.ts';
import { remainingMs } from '../../kernel/lease.ts';
import type { Service } from '../../kernel/service.ts';
import { readSignal } from '../domain/handler-signals.ts';
import { createJobRun, type JobContext, type JobRun } from './job-run.ts';
import type { ClaimedJob, JobEnd, JobStore } from './ports.ts';

export type Handler = (job: ClaimedJob, context: JobContext) => unknown;

export type QueueWorkerOptions = Readonly<{
  queue: string;
  handler: Handler;
  /** How many handlers run at once. */
  concurrency: number;
  /** How many more are claimed, so that a handler that ends finds the next job here. */
  prefetch: number;
  timeoutMs: number;
  leaseMs: number;
  pollMs: number;
}>;

export type QueueWorkerDeps = Readonly<{
  store: JobStore;
  clock: Clock;
  waitForWork: (queue: string, ms: number, signal: AbortSignal) => Promise<void>;
  onEnd: (end: JobEnd, status: string | null) => void;
  onError: (what: string, error: unknown) => void;
}>;

export type QueueWorker = Service &
  Readonly<{
    /** Handlers that were told to stop and did not. At `concurrency` of them nothing more is claimed. */
    zombies(): number;
  }>;

const settleBatch = 500;
const settlesAtOnce = 2;
const checkEveryMs = 100;
/** How long a handler that was told to stop keeps its slot. */
const graceMs = 5000;
const retryAfterErrorMs = 500;

/**
 * Runs the jobs of one queue: claims in batches what there is room for, hands each to the handler, and settles in
 * batches what has ended, all at the same time. Leases are renewed while jobs run or wait here; a job whose lease is
 * lost is told to stop, and what it comes to is dropped. A handler that outstays its timeout has failed, whatever it
 * does later.
 */
export function createQueueWorker(deps: QueueWorkerDeps, options: QueueWorkerOptions): QueueWorker {
  const { store, clock } = deps;
  const { queue, concurrency } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const waiting: ClaimedJob[] = [];
  const running = new Map<string, JobRun>();
  const ended: JobEnd[] = [];
  let zombies = 0;
  let settling = 0;
  let loops: Promise<unknown> = Promise.resolve();
  let onChange = (): void => {};

  const change = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        onChange = () => {};
        resolve();
      };
      const timer = setTimeout(done, ms);
      onChange = done;
    });

  const settleSome = async (): Promise<void> => {
    settling += 1;
    while (ended.length > 0) {
      const batch = ended.splice(0, settleBatch);
      try {
        const settled = await store.settle(queue, batch);
        const statuses = new Map(settled.map((one) => [one.jobId, one.status]));
        for (const end of batch) deps.onEnd(end, statuses.get(end.job.jobId) ?? null);
      } catch (error) {
        // Their leases run out, and the reaper ends them.
        deps.onError('settling', error);
      }
    }
    settling -= 1;
    onChange();
  };

  const hasUnsettled = (): boolean => settling > 0 || ended.length > 0;

  const end = (one: JobEnd): void => {
    ended.push(one);
    if (settling === 0) {
      settling += 1;
      setImmediate(() => {
        settling -= 1;
        void settleSome();
      });
    } else if (settling < settlesAtOnce && ended.length >= settleBatch) void settleSome();
  };

  const leaveSlot = (run: JobRun): void => {
    running.delete(run.job.jobId);
    startNext();
    onChange();
  };

  const work = async (run: JobRun): Promise<JobEnd> => {
    try {
      return endOf(run, await options.handler(run.job, run.context));
    } catch (error) {
      return endOfError(run, error);
    }
  };

  const start = async (job: ClaimedJob): Promise<void> => {
    const run = createJobRun(job, clock);
    running.set(job.jobId, run);
    const outcome = await work(run);
    if (run.isZombie()) {
      zombies -= 1;
      return onChange();
    }
    if (!run.isGivenUp()) end(outcome);
    leaveSlot(run);
  };

  function startNext(): void {
    while (waiting.length > 0 && running.size < concurrency && !signal.aborted) {
      const job = waiting.shift();
      if (job !== undefined) void start(job);
    }
  }

  /** Ends what has outstayed its time; frees the slot of what does not stop when it is told to. */
  const checkTimes = (): void => {
    const now = clock.monotonicMs();
    for (const run of running.values()) {
      if (!run.isGivenUp() && now - run.startedAtMs > options.timeoutMs) {
        run.giveUp(new Error(`the job did not end within ${options.timeoutMs} ms`));
        const error = `timeout: no end within ${options.timeoutMs} ms`;
        end({
          job: run.job,
          startedAt: run.startedAt,
          end: 'failed',
          error,
          isRetryable: true,
          retryAfterMs: null,
        });
      } else if (run.isGivenUp() && now - run.startedAtMs > options.timeoutMs + graceMs) {
        run.becomeZombie();
        zombies += 1;
        leaveSlot(run);
      }
    }
  };

  const renewLeases = async (): Promise<void> => {
    const held = [
      ...waiting,
      ...[...running.values()].filter((run) => !run.isGivenUp()).map(({ job }) => job),
    ];
    const dueMs = (options.leaseMs * 2) / 3;
    const due = held.filter(({ lease }) => remainingMs(lease, clock) < dueMs);
    if (due.length === 0) return;
    const { jobIds, endsAtMs } = await store.renew(due, options.leaseMs);
    const kept = new Set(jobIds);
    for (const job of due) {
      if (kept.has(job.jobId)) running.get(job.jobId)?.renew(endsAtMs);
      else
        running.get(job.jobId)?.giveUp(new Error('the job was taken away: cancelled, or its lease was lost'));
    }
    const still = waiting.filter(({ jobId }) => !due.some((job) => job.jobId === jobId) || kept.has(jobId));
    waiting.splice(
      0,
      waiting.length,
      ...still.map((job) => (kept.has(job.jobId) ? renewed(job, endsAtMs) : job)),
    );
  };

  const watch = async (): Promise<void> => {
    while (!signal.aborted || running.size > 0) {
      checkTimes();
      await renewLeases().catch((error: unknown) => deps.onError('renewing leases', error));
      await sleep(checkEveryMs);
    }
  };

  const claimSome = async (): Promise<void> => {
    const room = concurrency + options.prefetch - waiting.length - running.size;
    if (room < Math.max(1, options.prefetch / 2) || zombies >= concurrency) return change(options.pollMs);
    const jobs = await store.claim({ queue, limit: room, leaseMs: options.leaseMs, lane: 'together' });
    waiting.push(...jobs);
    startNext();
    if (jobs.length === 0) await deps.waitForWork(queue, options.pollMs, signal);
  };

  const claimAll = async (): Promise<void> => {
    while (!signal.aborted) {
      try {
        await claimSome();
      } catch (error) {
        if (!signal.aborted) deps.onError('claiming', error);
        await sleep(retryAfterErrorMs, signal);
      }
    }
    for (const job of waiting.splice(0))
      end({ job, startedAt: null, end: 'deferred', delayMs: 0, reason: 'the worker stops' });
  };

  return {
    name: `jobs ${queue}`,
    zombies: () => zombies,
    async start() {
      loops = Promise.all([claimAll(), watch()]);
    },
    async stop(deadline) {
      stopping.abort();
      onChange();
      await Promise.race([loops, onceAborted(deadline)]);
      while (hasUnsettled() && !deadline.aborted) await change(checkEveryMs);
    },
  };
}

function renewed(job: ClaimedJob, endsAtMs: number): ClaimedJob {
  return { ...job, lease: { ...job.lease, endsAtMs } };
}

function endOf({ job, startedAt }: JobRun, result: unknown): JobEnd {
  const told = readSignal(result);
  if (told?.signal === 'snooze')
    return { job, startedAt, end: 'deferred', delayMs: told.delayMs, reason: 'snoozed by its handler' };
  return { job, startedAt, end: 'completed', result: result === undefined ? null : JSON.stringify(result) };
}

function endOfError({ job, startedAt }: JobRun, error: unknown): JobEnd {
  const told = readSignal(error);
  if (told?.signal === 'snooze')
    return { job, startedAt, end: 'deferred', delayMs: told.delayMs, reason: 'snoozed by its handler' };
  return {
    job,
    startedAt,
    end: 'failed',
    error: messageOf(error),
    isRetryable: told?.signal !== 'not_retryable',
    retryAfterMs: told?.signal === 'retry_after' ? told.delayMs : null,
  };
}
