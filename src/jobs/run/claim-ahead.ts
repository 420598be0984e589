import type { Clock } from '../../kernel/clock.ts';
import { createClaimCursor } from '../../platform/work/claim-cursor.ts';
import type { Claimed, ClaimedJob, ClaimOptions, QueuePosition } from '../claim-jobs.ts';

/** How much work a worker may claim ahead. */
const aheadMs = 100;

/**
 * How many jobs to claim beyond those that run, so that the next job is there when a handler ends: hundreds of short
 * jobs, and no long ones, which other workers could run.
 */
export function prefetchOf(
  worker: Readonly<{ concurrency: number; averageMs: number; most: number }>,
): number {
  const { concurrency, averageMs, most } = worker;
  return Math.min(most, Math.floor((concurrency * aheadMs) / Math.max(averageMs, 0.001)));
}

const weight = 0.05;

/** A moving average of the run times. */
export function averageOf(averageMs: number | null, ms: number): number {
  return averageMs === null ? ms : averageMs + weight * (ms - averageMs);
}

/** A quick claim that takes longer has a bad plan. */
const slowMs = 20;
/** Until then autovacuum has usually analyzed the table, and the plan is good again. */
const notQuickForMs = 120_000;

type Wanted = Pick<ClaimOptions, 'queue' | 'limit' | 'leaseMs'>;

/** Claims jobs of one queue, starting where the last claim stopped. */
export type Claimer = (options: Wanted) => Promise<readonly ClaimedJob[]>;

export function createClaimer(claim: (options: ClaimOptions) => Promise<Claimed>, clock: Clock): Claimer {
  const cursor = createClaimCursor<QueuePosition>(clock, { isAdaptive: true });
  let expectsFew = false;
  /** After a quick claim that was slow or failed: its plan was made for a smaller table. */
  let quickFromMs = 0;

  const claimAfter = async (options: Wanted, after: QueuePosition | null) => {
    const begin = clock.monotonicMs();
    const isQuick = expectsFew && begin >= quickFromMs;
    if (isQuick) quickFromMs = begin + notQuickForMs;
    const { jobs, last } = await claim({ ...options, after, isQuick });
    if (isQuick && clock.monotonicMs() - begin < slowMs) quickFromMs = 0;
    const isFull = jobs.length === options.limit;
    expectsFew = !isFull;
    return { jobs, last, count: jobs.length, isFull };
  };

  return async (options) => (await cursor.claim((after) => claimAfter(options, after))).jobs;
}
