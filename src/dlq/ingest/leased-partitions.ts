import { remainingMs } from '../../kernel/lease.ts';
import type { PartitionRef } from '../../kernel/broker-record.ts';
import { createLeaseRenewer } from '../../platform/work/lease-renewer.ts';
import type { Worker } from '../../platform/work/work.ts';
import {
  claimPartitions,
  readShare,
  releasePartitions,
  renewPartitions,
  type LeasedPartition,
} from './partitions-table.ts';

/** A partition that this replica reads, with what only this process knows about it. */
export type ActivePartition = {
  leased: LeasedPartition;
  node: number;
  /** A batch of it is being stored: the next fetch leaves it out. */
  isBusy: boolean;
  /** It is released as soon as it is not busy. */
  isLeaving: boolean;
  /** Not fetched until then (monotonic), after an error of its own. */
  pausedUntilMs: number;
  failures: number;
  /** Its row may show an error, perhaps of another replica: true until a fetch has succeeded. */
  mayShowError: boolean;
  /** Since when the position is beyond the end of the log, or null. */
  beyondEndSinceMs: number | null;
};

export type LeasedPartitionsDeps = Readonly<{
  worker: Worker;
  leaseMs: number;
  nodeOf: (partition: PartitionRef) => number;
  onExpired: () => void;
}>;

export type LeasedPartitions = Readonly<{
  all(): readonly ActivePartition[];
  /** Claims free partitions up to this replica's share, or releases the surplus; returns the claimed ones. */
  balance(clusterId: string): Promise<readonly ActivePartition[]>;
  /** Renews the leases that are due, or all of them, and drops partitions that were lost. */
  renewDue(): Promise<void>;
  renewAll(): Promise<void>;
  /** Forgets a partition whose lease is lost. */
  drop(active: ActivePartition): void;
  release(active: ActivePartition): Promise<void>;
  releaseAll(): Promise<void>;
}>;

export function createLeasedPartitions(deps: LeasedPartitionsDeps): LeasedPartitions {
  const { worker, leaseMs } = deps;
  const active = new Map<bigint, ActivePartition>();

  const drop = (one: ActivePartition): void => {
    if (active.get(one.leased.id) === one) active.delete(one.leased.id);
  };

  const release = async (one: ActivePartition): Promise<void> => {
    drop(one);
    await releasePartitions(worker, [one.leased]);
  };

  return {
    ...createRenewer(deps, active, drop),
    all: () => [...active.values()],
    drop,
    release,

    async balance(clusterId) {
      const surplus = active.size - (await readShare(worker.db, clusterId));
      if (surplus > 0) {
        const idleFirst = [...active.values()].toSorted((a, b) => Number(a.isBusy) - Number(b.isBusy));
        for (const one of idleFirst.slice(0, surplus)) {
          one.isLeaving = true;
          if (!one.isBusy) await release(one);
        }
      }
      if (surplus >= 0) return [];
      const claimed = await claimPartitions(worker, { clusterId, limit: -surplus, leaseMs });
      const added = claimed.map((leased) => activate(leased, deps.nodeOf(leased)));
      for (const one of added) active.set(one.leased.id, one);
      return added;
    },

    async releaseAll() {
      const all = [...active.values()].map((one) => one.leased);
      active.clear();
      if (all.length > 0) await releasePartitions(worker, all);
    },
  };
}

function createRenewer(
  { worker, leaseMs, onExpired }: LeasedPartitionsDeps,
  active: ReadonlyMap<bigint, ActivePartition>,
  drop: (one: ActivePartition) => void,
): Pick<LeasedPartitions, 'renewDue' | 'renewAll'> {
  /** By our own clock: another replica may read them by now. */
  const dropExpired = (): void => {
    for (const one of active.values()) {
      if (remainingMs(one.leased.lease, worker.clock) > 0) continue;
      drop(one);
      onExpired();
    }
  };

  /** A partition may have been released and claimed again during the renewal. */
  const activeNow = ({ id, lease }: LeasedPartition): ActivePartition | undefined => {
    const one = active.get(id);
    return one?.leased.lease.epoch === lease.epoch ? one : undefined;
  };

  const leased = (): readonly LeasedPartition[] => [...active.values()].map((one) => one.leased);

  const renewer = createLeaseRenewer<LeasedPartition>({
    clock: worker.clock,
    leaseMs,
    leased,
    renew: (due, ms) => renewPartitions(worker, due, ms),
    onRenewed({ renewed, lost, endsAtMs }) {
      for (const one of renewed.map(activeNow))
        if (one !== undefined) one.leased = { ...one.leased, lease: { ...one.leased.lease, endsAtMs } };
      for (const one of lost.map(activeNow)) if (one !== undefined) drop(one);
    },
  });

  return {
    async renewDue() {
      dropExpired();
      await renewer.renewDue();
    },
    async renewAll() {
      dropExpired();
      await renewer.renew(leased());
    },
  };
}

function activate(leased: LeasedPartition, node: number): ActivePartition {
  return {
    leased,
    node,
    isBusy: false,
    isLeaving: false,
    pausedUntilMs: 0,
    failures: 0,
    mayShowError: true,
    beyondEndSinceMs: null,
  };
}
