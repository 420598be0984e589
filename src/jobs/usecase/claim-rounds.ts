import { sleep, type Clock } from '../../kernel/clock.ts';
import type { SoloGate } from '../../kernel/solo-gate.ts';
import { createClaimer, prefetchOf } from './claim-ahead.ts';
import type { EndQueue } from './end-queue.ts';
import type { JobSlots } from './job-slots.ts';
import type { JobStore } from './ports.ts';
import type { WorkerChange } from './worker-change.ts';

/** How a worker comes by jobs: it claims as much as there is room for, together with others or one job alone. */
export type ClaimRounds = Readonly<{
  /** Until the worker stops. */
  run(): Promise<void>;
  /** When it last looked for jobs or had no room for any, on the monotonic clock; at first, when it was made. */
  lookedAtMs(): number;
}>;

export type ClaimRoundsDeps = Readonly<{
  store: Pick<JobStore, 'claim' | 'hasAlone'>;
  clock: Clock;
  solo: SoloGate;
  slots: Pick<JobSlots, 'take' | 'held' | 'isFullOfZombies' | 'averageMs'>;
  ends: Pick<EndQueue, 'isEmpty' | 'isFull'>;
  change: Pick<WorkerChange, 'wait' | 'happened'>;
  isLimited: (queue: string) => boolean;
  waitForWork: (queue: string, ms: number, signal: AbortSignal) => Promise<void>;
  onError: (error: unknown) => void;
  stopping: AbortSignal;
}>;

export type ClaimRoundsOptions = Readonly<{
  queue: string;
  concurrency: number;
  maxPrefetch: number;
  leaseMs: number;
  pollMs: number;
}>;

const lookEveryMs = 100;
const lookAloneEveryMs = 1000;
/** Until it looks again where the one it saw could not be had: its queue is paused or has no room, or it is gone. */
const lookAloneAgainMs = 5000;
const retryAfterErrorMs = 500;

export function createClaimRounds(deps: ClaimRoundsDeps, options: ClaimRoundsOptions): ClaimRounds {
  const { store, clock, solo, slots, ends, change, stopping } = deps;
  const { queue, concurrency, leaseMs, pollMs } = options;
  const claimer = createClaimer(store, clock);
  let lookAloneAtMs = 0;
  let lookedAtMs = clock.monotonicMs();

  const isIdle = (): boolean => slots.held() === 0 && ends.isEmpty();
  const noteLook = (): void => void (lookedAtMs = clock.monotonicMs());

  const untilIdle = async (): Promise<void> => {
    while (!isIdle() && !stopping.aborted) await change.wait(0, lookEveryMs);
  };

  /** A job that ends brings no other one: until there is word of new ones, or none is left here. */
  const untilWorkOrIdle = async (): Promise<void> => {
    const done = new AbortController();
    const heard = new AbortController();
    const word = deps.waitForWork(queue, pollMs, AbortSignal.any([done.signal, stopping])).finally(() => {
      heard.abort();
      change.happened();
    });
    while (!heard.signal.aborted && !isIdle()) await change.wait(0, lookEveryMs);
    done.abort();
    await word;
  };

  const prefetchNow = (): number => {
    const averageMs = slots.averageMs();
    if (averageMs === null || deps.isLimited(queue)) return 0;
    return prefetchOf({ concurrency, averageMs, most: options.maxPrefetch });
  };

  /** Whether it found any, or has no room for any. */
  const claimSome = async (): Promise<boolean> => {
    const prefetch = prefetchNow();
    const most = concurrency + prefetch;
    const enoughRoom = Math.max(1, Math.floor(prefetch / 2));
    if (most - slots.held() < enoughRoom || slots.isFullOfZombies() || ends.isFull()) {
      noteLook();
      await change.wait(most - enoughRoom, pollMs);
      return true;
    }
    const jobs = await claimer.claim({ queue, limit: most - slots.held(), leaseMs });
    noteLook();
    slots.take(jobs);
    if (jobs.length === 0 && !isIdle()) await untilWorkOrIdle();
    return jobs.length > 0;
  };

  const isAloneDue = async (): Promise<boolean> => {
    if (clock.monotonicMs() < lookAloneAtMs || slots.isFullOfZombies()) return false;
    lookAloneAtMs = clock.monotonicMs() + lookAloneEveryMs;
    return store.hasAlone(queue);
  };

  const pauseAfter = async (error: unknown): Promise<false> => {
    if (!stopping.aborted) deps.onError(error);
    await sleep(retryAfterErrorMs, stopping);
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
    } while (!isIdle() && !hasAlone && !solo.isWanted() && !stopping.aborted);
    await untilIdle();
    return { foundAny, hasAlone };
  };

  const workAlone = (): Promise<void> =>
    solo.alone(async () => {
      const { jobs } = await store.claim({ queue, limit: 1, leaseMs, lane: 'alone', after: null });
      noteLook();
      slots.take(jobs);
      await untilIdle();
      // Where there was one there may be more.
      lookAloneAtMs = jobs.length > 0 ? 0 : clock.monotonicMs() + lookAloneAgainMs;
    });

  const round = async (): Promise<void> => {
    const { foundAny, hasAlone } = await solo.together(workTogether);
    if (hasAlone && !stopping.aborted) await workAlone();
    else if (!foundAny && !stopping.aborted) await deps.waitForWork(queue, pollMs, stopping);
  };

  return {
    lookedAtMs: () => lookedAtMs,
    async run() {
      while (!stopping.aborted) await round().catch(pauseAfter);
    },
  };
}
