import { onceAborted, sleep, type Clock } from '../../kernel/clock.ts';
import { remainingMs } from '../../kernel/lease.ts';
import type { Service } from '../../kernel/service.ts';
import { createLeaseRenewer, type LeaseRenewer } from '../../platform/work/lease-renewer.ts';
import type { SoloGate } from '../../platform/work/solo-gate.ts';
import { renew, type Renewed } from '../../platform/work/work.ts';
import { claimJobs, isSoloJobDue, type Claimed, type ClaimedJob, type ClaimOptions } from '../claim-jobs.ts';
import { jobs as jobsTable, type WorkDeps } from '../jobs-table.ts';
import { isPaused } from '../queue-pause.ts';
import { readPayload, type PayloadReading } from '../read-payload.ts';
import type { Settlement } from '../settle-jobs.ts';
import { createCapacitySignal } from './capacity-signal.ts';
import { averageOf } from './claim-ahead.ts';
import { ClaimLoop } from './claim-loop.ts';
import { JobRun, saveProgress } from './job-run.ts';
import { judgeReturned, judgeThrown } from './judge-handler.ts';
import { loadPayload } from './load-payload.ts';
import { createSettleQueue, type SettleQueue } from './settle-queue.ts';
import { createStartPermit, type StartPermit } from './start-permit.ts';

export type Handler = (job: ClaimedJob, context: JobRun['context']) => unknown;

export type QueueWorkerOptions = Readonly<{
  queue: string;
  handler: Handler;
  /** How many handlers run at once. */
  concurrency: number;
  /** How many jobs are claimed ahead at most; none of a limited queue. */
  maxPrefetch: number;
  timeoutMs: () => number;
  leaseMs: number;
  pollMs: number;
}>;

export type QueueWorkerDeps = WorkDeps &
  Readonly<{
    /** Shared by all queues of the process. */
    solo: SoloGate;
    waitForWork: (queue: string, ms: number, signal: AbortSignal) => Promise<unknown>;
    onSettled: (settlement: Settlement, status: string | null) => void;
    onError: (what: string, error: unknown) => void;
    /** In place of `waitForWork` while nothing is claimed or running; see `waitForDue` in platform/work. */
    waitForDue?: (queue: string, ms: number, signal: AbortSignal) => Promise<unknown>;
    /** In place of `claimJobs`. */
    claim?: (options: ClaimOptions) => Promise<Claimed>;
    /** In place of `readPayload`. */
    readPayload?: (job: ClaimedJob) => Promise<PayloadReading | null>;
  }>;

const checkEveryMs = 100; // how late a timeout or a lost lease is noticed; leases last at least 500 ms
const saveProgressEveryMs = 1000; // progress is for people; handlers may report it in a tight loop
/** How long a handler that was told to stop keeps its slot. */
const stopGraceMs = 5000;
const maxUnsettled = 5000;

/**
 * Runs the jobs of one queue. A job passes these steps, each a method below, in this order:
 *
 *   claim    the claim loop leases due jobs, as many as there is room for, and some ahead
 *   start    a waiting job gets a slot, if its lease is alive and the pause of its queue was checked within a second
 *   run      reads a long payload and calls the handler
 *   judge    turns what the handler returned or threw into a settlement: completed, failed or deferred
 *   settle   writes settlements in batches; a job that is no longer ours is a stale write and dropped
 *
 * Meanwhile it renews the leases of waiting, running and unsettled jobs. A job leaves the pipeline early:
 *
 *   waiting -> settled as unstarted   the worker stops, or the queue is paused
 *   running -> settled as failed      the timeout is over; the handler is told to stop
 *   running -> abandoned              the lease is lost, or the job was cancelled; the handler is told to stop
 *   abandoned -> zombie               the handler did not stop in time: its slot is given to another job
 *
 * With as many zombies as slots nothing more is claimed.
 */
export class QueueWorker implements Service {
  readonly name: string;
  readonly #deps: QueueWorkerDeps;
  readonly #options: QueueWorkerOptions;
  readonly #clock: Clock;
  readonly #claimLoop: ClaimLoop;
  readonly #settlements: SettleQueue;
  readonly #permit: StartPermit;
  readonly #leases: LeaseRenewer<ClaimedJob>;
  readonly #capacity = createCapacitySignal();
  readonly #stopping = new AbortController();
  /** The deadline of the stop is over: unsettled jobs are left to the reaper. */
  readonly #givingUp = new AbortController();
  /** Claimed jobs without a slot, in reverse: the next one is the last. */
  #waiting: ClaimedJob[] = [];
  /** Includes abandoned runs that still have their slot; the same job may run here again beside them. */
  readonly #running = new Set<JobRun>();
  #zombies = 0;
  #averageMs: number | null = null;
  #saveProgressAtMs = 0;
  #loops: Promise<unknown> | null = null;

  constructor(deps: QueueWorkerDeps, options: QueueWorkerOptions) {
    const { queue, leaseMs } = options;
    this.name = `jobs ${queue}`;
    this.#deps = deps;
    this.#options = options;
    this.#clock = deps.worker.clock;
    this.#permit = createStartPermit(this.#clock, () => isPaused(deps.db, queue));
    this.#settlements = createSettleQueue(deps, {
      queue,
      leaseMs,
      onSettled: deps.onSettled,
      onError: (error) => deps.onError('settling', error),
      onIdle: this.#capacity.wake,
      until: this.#givingUp.signal,
    });
    this.#leases = createLeaseRenewer<ClaimedJob>({
      clock: this.#clock,
      leaseMs,
      leased: () => [...this.#waiting, ...this.#liveRuns().map(({ job }) => job)],
      renew: (jobs) => renew(deps.worker, jobsTable, jobs, { keyOf: ({ jobId }) => jobId, leaseMs }),
      onRenewed: (result) => this.#noteRenewed(result),
    });
    this.#claimLoop = this.#createClaimLoop();
  }

  /** Running handlers. */
  running(): number {
    return this.#running.size;
  }

  /** Handlers that were told to stop and did not. */
  zombies(): number {
    return this.#zombies;
  }

  /** When it last looked for jobs or had no room for any, on the monotonic clock; null while it is not started. */
  lookedAtMs(): number | null {
    return this.#loops === null || this.#stopping.signal.aborted ? null : this.#claimLoop.lookedAtMs;
  }

  /** A job of the queue was cancelled: renews all leases soon, to find out whether it runs here. */
  checkLeases(): void {
    this.#leases.checkAll();
  }

  async start(): Promise<void> {
    this.#loops = Promise.all([
      this.#claimLoop.run().then(() => this.#giveBackWaiting()),
      this.#watchTimes(),
      this.#keepPermit(),
      this.#keepLeases(),
    ]);
  }

  async stop(deadline: AbortSignal): Promise<void> {
    this.#stopping.abort();
    this.#capacity.wake();
    void onceAborted(deadline).then(() => this.#givingUp.abort());
    await Promise.race([this.#loops, onceAborted(deadline)]);
    while (!this.#settlements.isEmpty() && !deadline.aborted) await this.#capacity.wait(0, checkEveryMs);
  }

  // Claim.

  #createClaimLoop(): ClaimLoop {
    const deps = this.#deps;
    const { queue, concurrency } = this.#options;
    return new ClaimLoop(
      {
        claim: deps.claim ?? ((options) => claimJobs(deps, options)),
        isSoloJobDue: () => isSoloJobDue(deps.db, queue),
        accept: (jobs, claimedAtMs) => this.#accept(jobs, claimedAtMs),
        jobCount: () => this.#jobCount(),
        isIdle: () => this.#jobCount() === 0 && this.#settlements.isEmpty(),
        isBlocked: () => this.#zombies >= concurrency || this.#settlements.waitingCount() >= maxUnsettled,
        averageMs: () => this.#averageMs,
        isLimited: () => deps.queues.isLimited(queue),
        capacity: this.#capacity,
        clock: this.#clock,
        solo: deps.solo,
        waitForWork: (ms, signal) => deps.waitForWork(queue, ms, signal),
        waitForDue: (ms, signal) => (deps.waitForDue ?? deps.waitForWork)(queue, ms, signal),
        onError: (error) => deps.onError('claiming', error),
        beat: () => deps.worker.watch?.beat('jobs', `push ${queue}`),
        stopping: this.#stopping.signal,
      },
      this.#options,
    );
  }

  #jobCount(): number {
    return this.#waiting.length + this.#running.size;
  }

  #accept(jobs: readonly ClaimedJob[], claimedAtMs: number): void {
    if (jobs.length > 0) this.#permit.confirm(claimedAtMs);
    this.#waiting = [...jobs.toReversed(), ...this.#waiting];
    this.#startWaiting();
  }

  // Start.

  #startWaiting(): void {
    const { concurrency } = this.#options;
    while (this.#running.size < concurrency && !this.#stopping.signal.aborted && this.#permit.isValid()) {
      const job = this.#waiting.pop();
      if (job === undefined) return;
      // A job whose lease has expired may have been claimed elsewhere; the reaper ends the attempt.
      if (remainingMs(job.lease, this.#clock) > 0) void this.#process(job);
    }
  }

  /** Start, run, judge, settle. */
  async #process(job: ClaimedJob): Promise<void> {
    const run = new JobRun(job, {
      clock: this.#clock,
      renewNow: ({ job: renewed }) => this.#leases.renew([renewed]),
    });
    this.#running.add(run);
    const settlement = await this.#run(run);
    this.#averageMs = averageOf(this.#averageMs, run.ranMs);
    if (run.isZombie) {
      this.#zombies -= 1;
      return this.#capacity.wake();
    }
    if (run.abandonedAtMs === null) this.#settle(settlement);
    this.#leaveSlot(run);
  }

  #leaveSlot(run: JobRun): void {
    this.#running.delete(run);
    this.#startWaiting();
    this.#capacity.jobsLeft(this.#jobCount());
  }

  // Run and judge.

  async #run(run: JobRun): Promise<Settlement> {
    const loaded = await loadPayload(run, {
      read: this.#deps.readPayload ?? ((job) => readPayload(this.#deps.db, job)),
      mayStart: () => this.#mayStillStart(run),
      onError: (error) => this.#deps.onError('reading a payload', error),
    });
    if ('outcome' in loaded) return loaded;
    run.start();
    try {
      return judgeReturned(run, await this.#options.handler(loaded.job, run.context));
    } catch (error) {
      return judgeThrown(run, error);
    } finally {
      loaded.release?.();
    }
  }

  /** Reading the payload may have taken long. */
  async #mayStillStart(run: JobRun): Promise<boolean> {
    const isPermitted = (await this.#permit.ensure()) && !this.#stopping.signal.aborted;
    return isPermitted && remainingMs(run.job.lease, this.#clock) > 0 && run.abandonedAtMs === null;
  }

  // Settle.

  #settle(settlement: Settlement): void {
    void this.#settlements.write(settlement);
  }

  #giveBackWaiting(): void {
    for (let job = this.#waiting.pop(); job !== undefined; job = this.#waiting.pop())
      this.#settle({ job, ran: null, outcome: 'unstarted' });
  }

  // Watch: timeouts, pauses and leases. Each has its own loop, so that a statement that hangs delays only its own.

  #isWorking(): boolean {
    return !this.#stopping.signal.aborted || this.#running.size > 0;
  }

  #liveRuns(): readonly JobRun[] {
    return [...this.#running].filter((run) => run.abandonedAtMs === null);
  }

  async #watchTimes(): Promise<void> {
    while (this.#isWorking()) {
      for (const run of this.#running) this.#checkTimes(run);
      await sleep(checkEveryMs);
    }
  }

  #checkTimes(run: JobRun): void {
    const { abandonedAtMs, job, ran } = run;
    const timeoutMs = this.#options.timeoutMs();
    if (abandonedAtMs !== null) {
      if (this.#clock.monotonicMs() - abandonedAtMs <= stopGraceMs) return;
      run.becomeZombie();
      this.#zombies += 1;
      this.#leaveSlot(run);
    } else if (run.ranMs > timeoutMs) {
      const error = `timed out after ${timeoutMs} ms`;
      run.abandon(new Error(error));
      this.#settle({ job, ran, outcome: 'failed', error, isRetryable: true, retryAfterMs: null });
    } else if (remainingMs(job.lease, this.#clock) <= 0) {
      run.abandon(new Error('the lease of the job expired: it could not be renewed in time'));
    }
  }

  /** While jobs wait: gives them back if the queue was paused. */
  async #keepPermit(): Promise<void> {
    while (this.#isWorking()) {
      if (this.#waiting.length > 0 && this.#permit.isRenewalDue())
        await this.#renewPermit().catch((error: unknown) => this.#deps.onError('checking the pause', error));
      await sleep(checkEveryMs);
    }
  }

  async #renewPermit(): Promise<void> {
    const checkedAtMs = this.#clock.monotonicMs();
    if (await isPaused(this.#deps.db, this.#options.queue)) return this.#giveBackWaiting();
    this.#permit.confirm(checkedAtMs);
    this.#startWaiting();
  }

  async #keepLeases(): Promise<void> {
    const { db, onError } = this.#deps;
    const failed = (error: unknown): void => onError('renewing leases', error);
    while (this.#isWorking() || (!this.#settlements.isEmpty() && !this.#givingUp.signal.aborted)) {
      await Promise.all([
        this.#leases.renewDue().catch(failed),
        this.#settlements.renewLeases().catch(failed),
      ]);
      if (this.#clock.monotonicMs() >= this.#saveProgressAtMs) {
        this.#saveProgressAtMs = this.#clock.monotonicMs() + saveProgressEveryMs;
        await saveProgress(db, this.#liveRuns()).catch((error: unknown) => onError('saving progress', error));
      }
      await sleep(checkEveryMs);
    }
  }

  /** A job may have been started, or given back and claimed again, since the database was asked. */
  #noteRenewed({ renewed, lost, endsAtMs }: Renewed<ClaimedJob>): void {
    const renewedKeys = new Set(renewed.map(leaseKey));
    const lostKeys = new Set(lost.map(leaseKey));
    for (const run of this.#liveRuns()) {
      if (renewedKeys.has(leaseKey(run.job))) run.renew(endsAtMs);
      else if (lostKeys.has(leaseKey(run.job)))
        run.abandon(new Error('the job was cancelled, or its lease was lost'));
    }
    this.#waiting = this.#waiting
      .filter((job) => !lostKeys.has(leaseKey(job)))
      .map((job) => (renewedKeys.has(leaseKey(job)) ? { ...job, lease: { ...job.lease, endsAtMs } } : job));
  }
}

function leaseKey({ jobId, lease }: ClaimedJob): string {
  return `${jobId} ${lease.epoch}`;
}
