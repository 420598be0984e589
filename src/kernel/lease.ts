import type { Clock } from './clock.ts';

/**
 * The right to work on claimed items for a while. The database decides who holds it, by its own clock and by
 * the epoch, a token that only grows. The worker additionally watches a monotonic clock that it read *before*
 * it asked for the claim or the renewal: by that clock a lease can only seem to end too early, never too late.
 */
export type Lease = Readonly<{
  owner: string;
  epoch: bigint;
  /** On the monotonic clock. */
  endsAtMs: number;
}>;

/** What is left of the lease; zero or less means that somebody else may already hold the items. */
export function remainingMs(lease: Lease, clock: Clock): number {
  return lease.endsAtMs - clock.monotonicMs();
}

/** Work that takes up to `neededMs` may begin only when it can end within the lease. */
export function hasTimeFor(lease: Lease, neededMs: number, clock: Clock): boolean {
  return remainingMs(lease, clock) >= neededMs;
}
