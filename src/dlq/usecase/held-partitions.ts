import type { Clock } from '../../kernel/clock.ts';
import { remainingMs } from '../../kernel/lease.ts';
import type { PartitionRef } from '../domain/record.ts';
import type { HeldPartition, PartitionStore } from './ports.ts';

/** A partition that this replica reads, with what only the running process knows about it. */
export type ActivePartition = {
  held: HeldPartition;
  node: number;
  /** A batch of it is being stored: it is left out of the next request until that is done. */
  isBusy: boolean;
  /** It goes to another replica as soon as it is not busy. */
  isLeaving: boolean;
  /** Left alone until then (monotonic), after trouble of its own. */
  pausedUntilMs: number;
  failures: number;
  /** Its row may show an error: true until a fetch has gone well, also for what an earlier holder has noted. */
  mayShowError: boolean;
  /** Since when the position lies beyond the end of the log, or null. */
  beyondEndSinceMs: number | null;
};

export type HeldPartitionsDeps = Readonly<{
  partitions: PartitionStore;
  clock: Clock;
  leaseMs: number;
  nodeOf: (partition: PartitionRef) => number;
  onLost: (count: number) => void;
}>;

export type HeldPartitions = Readonly<{
  all(): readonly ActivePartition[];
  /** Takes free partitions up to this replica's share, or lets the surplus go; returns what was taken. */
  balance(clusterId: string): Promise<readonly ActivePartition[]>;
  /** Prolongs all leases. `isLocked`: not that of a row which somebody is writing this moment. */
  renew(): Promise<Readonly<{ isLocked: boolean }>>;
  /** Forgets a partition whose lease is lost. */
  drop(active: ActivePartition): void;
  /** Gives a partition back that is leaving. */
  giveBack(active: ActivePartition): Promise<void>;
  giveAllBack(): Promise<void>;
}>;

export function createHeldPartitions(deps: HeldPartitionsDeps): HeldPartitions {
  const active = new Map<bigint, ActivePartition>();

  const drop = (one: ActivePartition): void => {
    if (active.get(one.held.id) === one) active.delete(one.held.id);
  };

  const giveBack = async (one: ActivePartition): Promise<void> => {
    drop(one);
    await deps.partitions.release([one.held]);
  };

  return {
    all: () => [...active.values()],
    drop,
    giveBack,

    async balance(clusterId) {
      const share = await deps.partitions.share(clusterId);
      const surplus = active.size - share;
      if (surplus > 0) {
        const idleFirst = [...active.values()].toSorted((a, b) => Number(a.isBusy) - Number(b.isBusy));
        for (const one of idleFirst.slice(0, surplus)) {
          one.isLeaving = true;
          if (!one.isBusy) await giveBack(one);
        }
        return [];
      }
      if (surplus === 0) return [];
      const claimed = await deps.partitions.claim(clusterId, -surplus, deps.leaseMs);
      const taken = claimed.map((held) => activeOf(held, deps.nodeOf(held)));
      for (const one of taken) active.set(one.held.id, one);
      return taken;
    },

    async renew() {
      // Forgets first what ran out by our own clock: somebody else may read it by now.
      for (const one of active.values()) {
        if (remainingMs(one.held.lease, deps.clock) > 0) continue;
        drop(one);
        deps.onLost(1);
      }
      const before = [...active.values()];
      if (before.length === 0) return { isLocked: false };
      const renewed = await deps.partitions.renew(
        before.map((one) => one.held),
        deps.leaseMs,
      );
      for (const one of before) {
        if (renewed.ids.has(one.held.id))
          one.held = { ...one.held, lease: { ...one.held.lease, endsAtMs: renewed.endsAtMs } };
        else if (!renewed.locked.has(one.held.id)) drop(one);
      }
      return { isLocked: renewed.locked.size > 0 };
    },

    async giveAllBack() {
      const all = [...active.values()];
      active.clear();
      if (all.length > 0) await deps.partitions.release(all.map((one) => one.held));
    },
  };
}

function activeOf(held: HeldPartition, node: number): ActivePartition {
  return {
    held,
    node,
    isBusy: false,
    isLeaving: false,
    pausedUntilMs: 0,
    failures: 0,
    mayShowError: true,
    beyondEndSinceMs: null,
  };
}
