import type { Clock } from '../../kernel/clock.ts';
import { remainingMs, type Lease } from '../../kernel/lease.ts';
import type { Renewed } from './work.ts';

/**
 * Renews the leases of work that runs longer than a lease. A lease is renewed when a third of it is over. A row that
 * somebody has locked keeps its lease as it was and is tried again soon. A row that is neither renewed nor locked was
 * lost to the reaper, an operator or a cancel: the slice stops working on it. A worker that cannot renew at all has to
 * stop when its leases expire on its own clock.
 */
export type LeaseRenewer<Item> = Readonly<{
  /** Renews what is due. Call it several times per third of a lease. */
  renewDue(): Promise<void>;
  /** Renews these now, whether or not they are due. */
  renew(items: readonly Item[]): Promise<void>;
  /** The next `renewDue` renews everything: some of it may have been lost. */
  checkAll(): void;
}>;

export type LeaseRenewerOptions<Item> = Readonly<{
  clock: Clock;
  leaseMs: number;
  /** What this process has leased now. */
  leased: () => readonly Item[];
  /** Asks the database. */
  renew: (items: readonly Item[], leaseMs: number) => Promise<Renewed<Item>>;
  /** Writes down the new ends of leases, and stops work on what was lost. */
  onRenewed: (result: Renewed<Item>) => void;
}>;

export function createLeaseRenewer<Item extends Readonly<{ lease: Lease }>>({
  clock,
  leaseMs,
  leased,
  onRenewed,
  ...options
}: LeaseRenewerOptions<Item>): LeaseRenewer<Item> {
  let isCheckWanted = false;
  let retryAtMs = 0;

  const renew = async (items: readonly Item[]): Promise<void> => {
    if (items.length > 0) onRenewed(await options.renew(items, leaseMs));
  };

  const isBelow = (share: number) => (item: Item) => remainingMs(item.lease, clock) < leaseMs * share;

  /** Leases that will be due soon are renewed together with those that are due now. */
  const dueNow = (): readonly Item[] => {
    const all = leased();
    if (isCheckWanted) return all;
    return all.some(isBelow(2 / 3)) ? all.filter(isBelow(5 / 6)) : [];
  };

  return {
    renew,
    checkAll: () => void (isCheckWanted = true),
    async renewDue() {
      const begin = clock.monotonicMs();
      if (begin < retryAtMs) return;
      const due = dueNow();
      isCheckWanted = false;
      try {
        await renew(due);
      } catch (error) {
        retryAtMs = begin + leaseMs / 30;
        throw error;
      }
    },
  };
}
