import type { Clock } from '../../kernel/clock.ts';
import type { ClaimedJob, ClaimOptions, JobStore, LowWater } from './ports.ts';

/** So much work may wait in a process while it is busy with other work. */
const aheadMs = 100;

/**
 * How many jobs are claimed beyond those that run, so that a handler that ends finds the next one here: as many as
 * are done in a moment. Short jobs are claimed by the hundred, and of long ones none is kept from other workers.
 */
export function prefetchOf(
  worker: Readonly<{ concurrency: number; averageMs: number; most: number }>,
): number {
  const { concurrency, averageMs, most } = worker;
  return Math.min(most, Math.floor((concurrency * aheadMs) / Math.max(averageMs, 0.001)));
}

const weight = 0.05;

/** The average over the last jobs; the first one stands for all. */
export function averageOf(averageMs: number | null, ms: number): number {
  return averageMs === null ? ms : averageMs + weight * (ms - averageMs);
}

const lookBackEveryMs = 1000;
/** A look back that takes longer is done once in a while only. */
const dearMs = 20;
const msPerJob = 0.1;
/** So many times as long as it took, the next one waits. */
const lookBackRest = 20;

const notQuickForMs = 120_000;

type Wanted = Pick<ClaimOptions, 'queue' | 'limit' | 'leaseMs' | 'payloadAs'>;

export type Claimer = Readonly<{ claim(options: Wanted): Promise<readonly ClaimedJob[]> }>;

/**
 * While there is more than enough, the next claim begins where the last one ended: a transaction that runs long
 * elsewhere keeps every claimed row's old index entry alive, and each claim would step over all of them. Rows that
 * came in before the mark, those of higher priority among them, are found by looking back: once a second, and as soon
 * as a claim is not full. Where looking back takes long it is done less often.
 */
export function createClaimer(store: Pick<JobStore, 'claim'>, clock: Clock): Claimer {
  let after: LowWater | null = null;
  let lookBackAtMs = 0;
  let isDear = false;
  let expectsLittle = false;
  /** After a quick claim that was slow or failed: its plan is that of a smaller table, until statistics are taken. */
  let quickFromMs = 0;

  return {
    async claim(options) {
      const begin = clock.monotonicMs();
      const from: LowWater | null = begin >= lookBackAtMs ? null : after;
      const isQuick = expectsLittle && begin >= quickFromMs;
      if (isQuick) quickFromMs = begin + notQuickForMs;
      const claimed = await store.claim({ ...options, lane: 'together', after: from, isQuick });
      const tookMs = clock.monotonicMs() - begin;
      if (isQuick && tookMs < dearMs) quickFromMs = 0;
      if (from === null) {
        isDear = tookMs > dearMs + claimed.jobs.length * msPerJob;
        lookBackAtMs = begin + tookMs + Math.max(lookBackEveryMs, lookBackRest * tookMs);
      }
      const isFull = claimed.jobs.length === options.limit;
      expectsLittle = !isFull;
      after = isFull || isDear ? (claimed.last ?? from) : null;
      const foundNothing = claimed.jobs.length === 0 && from !== null && !isDear;
      return foundNothing
        ? (await store.claim({ ...options, lane: 'together', after: null })).jobs
        : claimed.jobs;
    },
  };
}
