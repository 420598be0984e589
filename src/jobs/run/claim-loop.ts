import { sleep, type Clock } from '../../kernel/clock.ts';
import type { SoloGate } from '../../platform/work/solo-gate.ts';
import { restAfterErrorMs } from '../../platform/work/work.ts';
import type { Claimed, ClaimedJob, ClaimOptions } from '../claim-jobs.ts';
import type { CapacitySignal } from './capacity-signal.ts';
import { createClaimer, prefetchOf, type Claimer } from './claim-ahead.ts';

/** What the claim loop asks of its worker. */
export type ClaimLoopDeps = Readonly<{
  claim: (options: ClaimOptions) => Promise<Claimed>;
  isSoloJobDue: () => Promise<boolean>;
  /** Passes claimed jobs on. `claimedAtMs`: when the claim was sent. */
  accept: (jobs: readonly ClaimedJob[], claimedAtMs: number) => void;
  /** Claimed jobs that wait or run. */
  jobCount: () => number;
  /** Nothing waits, runs or is unsettled. */
  isIdle: () => boolean;
  /** Nothing may be claimed now, whatever room there is. */
  isBlocked: () => boolean;
  /** Average run time; null before the first job has ended. */
  averageMs: () => number | null;
  isLimited: () => boolean;
  capacity: CapacitySignal;
  clock: Clock;
  solo: SoloGate;
  waitForWork: (ms: number, signal: AbortSignal) => Promise<unknown>;
  waitForDue: (ms: number, signal: AbortSignal) => Promise<unknown>;
  onError: (error: unknown) => void;
  /** Called while the loop runs, whether it finds jobs, has no room or waits for the last job. */
  beat: () => void;
  stopping: AbortSignal;
}>;

export type ClaimLoopOptions = Readonly<{
  queue: string;
  concurrency: number;
  maxPrefetch: number;
  leaseMs: number;
  pollMs: number;
}>;

/** How late a lowered capacity is noticed, which nothing notifies. */
const checkEveryMs = 100;
/** Looking for jobs that must run alone costs a statement; they are rare. */
const lookForSoloEveryMs = 1000;
/** After a solo job that was due could not be claimed: its queue is paused or full, or another worker has it. */
const lookForSoloAgainMs = 5000;

/**
 * Decides when a worker claims, and how much. Together with the other queues of the process it claims as much as it
 * has room for. A job that must run alone is claimed when the whole process has nothing claimed, running or unsettled:
 * if it crashes the process, it costs no other job an attempt.
 */
export class ClaimLoop {
  readonly #deps: ClaimLoopDeps;
  readonly #options: ClaimLoopOptions;
  readonly #claimNext: Claimer;
  #lookForSoloAtMs = 0;
  #lookedAtMs: number;

  constructor(deps: ClaimLoopDeps, options: ClaimLoopOptions) {
    this.#deps = deps;
    this.#options = options;
    this.#claimNext = createClaimer(deps.claim, deps.clock);
    this.#lookedAtMs = deps.clock.monotonicMs();
  }

  /** When it last claimed or had no room, on the monotonic clock; at first, when it was created. */
  get lookedAtMs(): number {
    return this.#lookedAtMs;
  }

  /** Runs until the worker stops. */
  async run(): Promise<void> {
    const { stopping } = this.#deps;
    while (!stopping.aborted) await this.#round().catch((error: unknown) => this.#pauseAfter(error));
  }

  async #round(): Promise<void> {
    const { solo, stopping } = this.#deps;
    const { foundAny, isSoloDue } = await solo.together(() => this.#claimTogether());
    if (isSoloDue && !stopping.aborted) await solo.alone(() => this.#claimSolo());
    else if (!foundAny && !stopping.aborted) await this.#deps.waitForDue(this.#options.pollMs, stopping);
  }

  /** Claims until nothing is due, or until some queue of the process needs it for a solo job. */
  async #claimTogether(): Promise<Readonly<{ foundAny: boolean; isSoloDue: boolean }>> {
    const { isIdle, solo, stopping } = this.#deps;
    const pauseAfter = (error: unknown): Promise<false> => this.#pauseAfter(error);
    let foundAny = false;
    let isSoloDue = false;
    do {
      foundAny = (await this.#claimSome().catch(pauseAfter)) || foundAny;
      isSoloDue = await this.#isSoloDue().catch(pauseAfter);
    } while (!isIdle() && !isSoloDue && !solo.isWanted() && !stopping.aborted);
    await this.#untilIdle();
    return { foundAny, isSoloDue };
  }

  /** False if nothing was due. */
  async #claimSome(): Promise<boolean> {
    const { clock, jobCount, isBlocked, capacity } = this.#deps;
    const { queue, concurrency, leaseMs, pollMs } = this.#options;
    const prefetch = this.#prefetch();
    const most = concurrency + prefetch;
    const enoughRoom = Math.max(1, Math.floor(prefetch / 2));
    if (most - jobCount() < enoughRoom || isBlocked()) {
      this.#noteLook();
      await capacity.wait(most - enoughRoom, pollMs);
      return true;
    }
    const claimedAtMs = clock.monotonicMs();
    const jobs = await this.#claimNext({ queue, limit: most - jobCount(), leaseMs });
    this.#noteLook();
    this.#deps.accept(jobs, claimedAtMs);
    if (jobs.length === 0 && !this.#deps.isIdle()) await this.#untilWorkOrIdle();
    return jobs.length > 0;
  }

  #noteLook(): void {
    this.#lookedAtMs = this.#deps.clock.monotonicMs();
    this.#deps.beat();
  }

  #prefetch(): number {
    const averageMs = this.#deps.averageMs();
    if (averageMs === null || this.#deps.isLimited()) return 0;
    const { concurrency, maxPrefetch: most } = this.#options;
    return prefetchOf({ concurrency, averageMs, most });
  }

  async #isSoloDue(): Promise<boolean> {
    const { clock, isBlocked } = this.#deps;
    if (clock.monotonicMs() < this.#lookForSoloAtMs || isBlocked()) return false;
    this.#lookForSoloAtMs = clock.monotonicMs() + lookForSoloEveryMs;
    return this.#deps.isSoloJobDue();
  }

  async #claimSolo(): Promise<void> {
    const { clock, claim, accept } = this.#deps;
    const { queue, leaseMs } = this.#options;
    const claimedAtMs = clock.monotonicMs();
    const { jobs } = await claim({ queue, limit: 1, leaseMs, isSolo: true });
    this.#noteLook();
    accept(jobs, claimedAtMs);
    await this.#untilIdle();
    // If there was one there may be more.
    this.#lookForSoloAtMs = jobs.length > 0 ? 0 : clock.monotonicMs() + lookForSoloAgainMs;
  }

  async #untilIdle(): Promise<void> {
    const { isIdle, stopping, capacity, beat } = this.#deps;
    while (!isIdle() && !stopping.aborted) {
      await capacity.wait(0, checkEveryMs);
      beat();
    }
  }

  /** Nothing more was due: claims again when a job is added, or when all jobs here have ended. */
  async #untilWorkOrIdle(): Promise<void> {
    const { isIdle, stopping, capacity } = this.#deps;
    const done = new AbortController();
    const woken = new AbortController();
    const waiting = this.#deps
      .waitForWork(this.#options.pollMs, AbortSignal.any([done.signal, stopping]))
      .finally(() => {
        woken.abort();
        capacity.wake();
      });
    while (!woken.signal.aborted && !isIdle()) await capacity.wait(0, checkEveryMs);
    done.abort();
    await waiting;
  }

  async #pauseAfter(error: unknown): Promise<false> {
    const { stopping } = this.#deps;
    if (!stopping.aborted) this.#deps.onError(error);
    await sleep(restAfterErrorMs, stopping);
    return false;
  }
}
