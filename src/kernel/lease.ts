import type { Clock } from './clock.ts';

/**
 * The right to work on claimed items for some time. The database decides who has it, by its own clock and by the epoch,
 * which only grows. The worker also checks a monotonic clock that it read *before* the claim or the renewal: by that
 * clock a lease can only seem to end too early, never too late.
 */
export type Lease = Readonly<{
  owner: string;
  epoch: bigint;
  /** On the monotonic clock. */
  endsAtMs: number;
}>;

/** The time that is left; at zero or less another worker may already have the items. */
export function remainingMs(lease: Lease, clock: Clock): number {
  return lease.endsAtMs - clock.monotonicMs();
}

/** Whether work that takes up to `neededMs` can end within the lease. */
export function hasTimeFor(lease: Lease, neededMs: number, clock: Clock): boolean {
  return remainingMs(lease, clock) >= neededMs;
}
