import { onceAborted, sleep, type Clock } from '../../kernel/clock.ts';
import { remainingMs } from '../../kernel/lease.ts';
import type { Service } from '../../kernel/service.ts';
import type { SoloGate } from '../../kernel/solo-gate.ts';
import { averageOf, createClaimer, prefetchOf } from './claim-ahead.ts';
import { createEndQueue } from './end-queue.ts';
import { endOf, endOfError } from './handler-end.ts';
import { createJobRun, type JobContext, type JobRun } from './job-run.ts';
import type { ClaimedJob, JobEnd, JobStore } from './ports.ts';

export type Handler = (job: ClaimedJob, context: JobContext) => unknown;

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
    /** Jobs of the queue were cancelled: looks at once whether some of ours are among them. */
    checkLeases(): void;
  }>;

const checkEveryMs = 100;
const saveProgressEveryMs = 1000;
const lookAloneEveryMs = 1000;
/** Until it looks again where the one it saw could not be had: its queue is paused or has no room, or it is gone. */
const lookAloneAgainMs = 5000;
/** How long a handler that was told to stop keeps its slot. */
const graceMs = 5000;
const retryAfterErrorMs = 500;

/**
 * Runs the jobs of one queue: claims in batches what there is room for, hands each to the handler, and settles in
 * batches what has ended, all at the same time. Leases are renewed while jobs run or wait here; a job whose lease is
 * lost is told to stop, and what it comes to is dropped. A handler that outstays its timeout has failed, whatever it
 * does later. A job that took its worker down before and has one attempt left is claimed when nothing else of the
 * process is, and has it for itself.
 */
export function createQueueWorker(deps: QueueWorkerDeps, options: QueueWorkerOptions): QueueWorker {
  const { store, clock, solo } = deps;
  const { queue, concurrency, leaseMs, pollMs } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  /** The stop's time is over: what could not be written down by then is left to the reaper. */
  const givingUp = new AbortController();
  const claimer = createClaimer(store, clock);
  let waiting: ClaimedJob[] = [];
  /** Also those that were told to stop and still have their slot: the same job may run here again beside them. */
  const running = new Set<JobRun>();
  let zombies = 0;
  let averageMs: number | null = null;
  let isLeaseCheckDue = false;
  let saveProgressAtMs = 0;
  let lookAloneAtMs = 0;
  let loops: Promise<unknown> = Promise.resolve();
  let onChange = (): void => {};
  let wakeAt = -1;

  const ends = createEndQueue({
    store,
    queue,
    onEnd: deps.onEnd,
    onError: (error) => deps.onError('settling', error),
    onChange: () => onChange(),
    until: givingUp.signal,
  });

  /** Resolves when so few are left here, when something else has changed, or after the time. */
  const change = (few: number, ms: number): Promise<void> =>
    new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        onChange = () => {};
        wakeAt = -1;
        resolve();
      };
      const timer = setTimeout(done, ms);
      onChange = done;
      wakeAt = few;
    });

  const leaveSlot = (run: JobRun): void => {
    running.delete(run);
    startNext();
    if (waiting.length + running.size <= wakeAt) onChange();
  };

  const handle = async (run: JobRun): Promise<JobEnd> => {
    try {
      return endOf(run, await options.handler(run.job, run.context));
    } catch (error) {
      return endOfError(run, error);
    }
  };

  const start = async (job: ClaimedJob): Promise<void> => {
    const run = createJobRun(job, { clock, renewNow: (one) => renew([one.job]) });
    running.add(run);
    const end = await handle(run);
    averageMs = averageOf(averageMs, clock.monotonicMs() - run.startedAtMs);
    if (run.isZombie()) {
      zombies -= 1;
      return onChange();
    }
    if (run.givenUpAtMs() === null) ends.add(end);
    leaveSlot(run);
  };

  function startNext(): void {
    let next = 0;
    for (; next < waiting.length && running.size < concurrency && !signal.aborted; next += 1) {
      const job = waiting[next];
      // One whose lease is over may be somebody else's by now; the reaper ends the attempt.
      if (job !== undefined && remainingMs(job.lease, clock) > 0) void start(job);
    }
    if (next > 0) waiting = waiting.slice(next);
  }

  const timeOut = (run: JobRun, timeoutMs: number): void => {
    const error = `timeout: no end within ${timeoutMs} ms`;
    run.giveUp(new Error(error));
    const { job, startedAt } = run;
    ends.add({ job, startedAt, end: 'failed', error, isRetryable: true, retryAfterMs: null });
  };

  /** Ends what has outstayed its time; frees the slot of what does not stop when it is told to. */
  const checkTimes = (): void => {
    const now = clock.monotonicMs();
    const timeoutMs = options.timeoutMs();
    for (const run of running) {
      const givenUpAtMs = run.givenUpAtMs();
      if (givenUpAtMs === null) {
        if (now - run.startedAtMs > timeoutMs) timeOut(run, timeoutMs);
        else if (remainingMs(run.job.lease, clock) <= 0)
          run.giveUp(new Error('the lease of the job is over: it could not be renewed in time'));
      } else if (now - givenUpAtMs > graceMs) {
        run.becomeZombie();
        zombies += 1;
        leaveSlot(run);
      }
    }
  };

  const heldRuns = (): readonly JobRun[] => [...running].filter((run) => run.givenUpAtMs() === null);

  const renew = async (due: readonly ClaimedJob[]): Promise<void> => {
    const { jobIds, endsAtMs } = await store.renew(due, leaseMs);
    const kept = new Set(jobIds);
    const asked = new Map(due.map(({ jobId, lease }) => [jobId, lease.epoch]));
    const isAsked = ({ jobId, lease }: ClaimedJob): boolean => asked.get(jobId) === lease.epoch;
    for (const run of heldRuns().filter(({ job }) => isAsked(job))) {
      if (kept.has(run.job.jobId)) run.renew(endsAtMs);
      else run.giveUp(new Error('the job was taken away: cancelled, or its lease was lost'));
    }
    waiting = waiting
      .filter((job) => !isAsked(job) || kept.has(job.jobId))
      .map((job) => (isAsked(job) ? { ...job, lease: { ...job.lease, endsAtMs } } : job));
  };

  const renewLeases = async (): Promise<void> => {
    const isAll = isLeaseCheckDue;
    isLeaseCheckDue = false;
    const held = [...waiting, ...heldRuns().map(({ job }) => job)];
    const due = isAll ? held : held.filter(({ lease }) => remainingMs(lease, clock) < (leaseMs * 2) / 3);
    if (due.length > 0) await renew(due);
  };

  const saveProgress = async (): Promise<void> => {
    const now = clock.monotonicMs();
    if (now < saveProgressAtMs) return;
    saveProgressAtMs = now + saveProgressEveryMs;
    const said = heldRuns().flatMap((run) => {
      const progress = run.takeProgress();
      return progress === null ? [] : [{ job: run.job, progress }];
    });
    if (said.length > 0) await store.saveProgress(said);
  };

  /** Apart from the renewals: one that hangs must not keep a lease or a timeout from ending. */
  const watchTimes = async (): Promise<void> => {
    while (!signal.aborted || running.size > 0) {
      checkTimes();
      await sleep(checkEveryMs);
    }
  };

  const keepLeases = async (): Promise<void> => {
    while (!signal.aborted || running.size > 0) {
      await renewLeases().catch((error: unknown) => deps.onError('renewing leases', error));
      await saveProgress().catch((error: unknown) => deps.onError('saving progress', error));
      await sleep(checkEveryMs);
    }
  };

  const held = (): number => waiting.length + running.size;
  const isIdle = (): boolean => held() === 0 && ends.isEmpty();

  /** A job that ends brings no other one: until there is word of new ones, or none is left here. */
  const untilWorkOrEmpty = async (): Promise<void> => {
    const done = new AbortController();
    const heard = new AbortController();
    const word = deps.waitForWork(queue, pollMs, AbortSignal.any([done.signal, signal])).finally(() => {
      heard.abort();
      onChange();
    });
    while (!heard.signal.aborted && !isIdle()) await change(0, checkEveryMs);
    done.abort();
    await word;
  };

  /** Whether it found any, or has no room for any. */
  const claimSome = async (): Promise<boolean> => {
    const prefetch =
      averageMs === null || deps.isLimited(queue)
        ? 0
        : prefetchOf({ concurrency, averageMs, most: options.maxPrefetch });
    const most = concurrency + prefetch;
    const enoughRoom = Math.max(1, Math.floor(prefetch / 2));
    if (most - held() < enoughRoom || zombies >= concurrency) {
      await change(most - enoughRoom, pollMs);
      return true;
    }
    const jobs = await claimer.claim({ queue, limit: most - held(), leaseMs });
    waiting.push(...jobs);
    startNext();
    if (jobs.length === 0 && !isIdle()) await untilWorkOrEmpty();
    return jobs.length > 0;
  };

  const isAloneDue = async (): Promise<boolean> => {
    if (clock.monotonicMs() < lookAloneAtMs || zombies >= concurrency) return false;
    lookAloneAtMs = clock.monotonicMs() + lookAloneEveryMs;
    return store.hasAlone(queue);
  };

  const pauseAfter = async (error: unknown): Promise<false> => {
    if (!signal.aborted) deps.onError('claiming', error);
    await sleep(retryAfterErrorMs, signal);
    return false;
  };

  /**
   * Claims and runs until there is nothing, or somebody is to have the process for itself. It is left with nothing
   * claimed, running or not yet written down: what takes the process down alone costs no neighbour an attempt.
   */
  const workTogether = async (): Promise<Readonly<{ foundAny: boolean; hasAlone: boolean }>> => {
    let foundAny = false;
    let hasAlone = false;
    do {
      foundAny = (await claimSome().catch(pauseAfter)) || foundAny;
      hasAlone = await isAloneDue().catch(pauseAfter);
    } while (!isIdle() && !hasAlone && !solo.isWanted() && !signal.aborted);
    while (!isIdle() && !signal.aborted) await change(0, checkEveryMs);
    return { foundAny, hasAlone };
  };

  const workAlone = (): Promise<void> =>
    solo.alone(async () => {
      const { jobs } = await store.claim({ queue, limit: 1, leaseMs, lane: 'alone', after: null });
      waiting.push(...jobs);
      startNext();
      while (!isIdle() && !signal.aborted) await change(0, checkEveryMs);
      // Where there was one there may be more.
      lookAloneAtMs = jobs.length > 0 ? 0 : clock.monotonicMs() + lookAloneAgainMs;
    });

  const round = async (): Promise<void> => {
    const { foundAny, hasAlone } = await solo.together(workTogether);
    if (hasAlone && !signal.aborted) await workAlone();
    else if (!foundAny && !signal.aborted) await deps.waitForWork(queue, pollMs, signal);
  };

  const workOnAll = async (): Promise<void> => {
    while (!signal.aborted) {
      try {
        await round();
      } catch (error) {
        if (!signal.aborted) deps.onError('claiming', error);
        await sleep(retryAfterErrorMs, signal);
      }
    }
    for (const job of waiting.splice(0)) ends.add({ job, startedAt: null, end: 'unstarted' });
  };

  return {
    name: `jobs ${queue}`,
    running: () => running.size,
    zombies: () => zombies,
    checkLeases: () => void (isLeaseCheckDue = true),
    async start() {
      loops = Promise.all([workOnAll(), watchTimes(), keepLeases()]);
    },
    async stop(deadline) {
      stopping.abort();
      onChange();
      void onceAborted(deadline).then(() => givingUp.abort());
      await Promise.race([loops, onceAborted(deadline)]);
      while (!ends.isEmpty() && !deadline.aborted) await change(0, checkEveryMs);
    },
  };
}
