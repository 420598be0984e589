import { sleep } from '../../kernel/clock.ts';
import { remainingMs, type Lease } from '../../kernel/lease.ts';
import { createLeaseRenewer } from './lease-renewer.ts';
import { release, renew, type Worker, type WorkTable } from './work.ts';

/** A row that this process has claimed, to work on it for longer than one lease. */
export type LeasedRow = Readonly<{
  table: WorkTable;
  key: string;
  lease: Lease;
  leaseMs: number;
  onError: (error: unknown) => void;
}>;

/**
 * Works and renews in parallel; returns when the work is done. The signal that the work gets aborts when the lease is
 * lost or has expired on our own clock, or when the process stops. The lease is released at the end.
 */
export async function workLeased(
  worker: Worker,
  row: LeasedRow,
  stopping: AbortSignal,
  work: (leased: AbortSignal) => Promise<void>,
): Promise<void> {
  const ended = new AbortController();
  const leased = AbortSignal.any([ended.signal, stopping]);
  const renewing = keepRenewing(worker, row, leased).finally(() => ended.abort());
  try {
    await work(leased);
  } finally {
    ended.abort();
    await renewing;
    await release(worker.db, row.table, { keys: [row.key], epoch: row.lease.epoch });
  }
}

async function keepRenewing(
  worker: Worker,
  { table, key, leaseMs, onError, ...row }: LeasedRow,
  leased: AbortSignal,
): Promise<void> {
  let { lease } = row;
  let isLost = false;
  const renewer = createLeaseRenewer<Readonly<{ lease: Lease }>>({
    clock: worker.clock,
    leaseMs,
    leased: () => [{ lease }],
    renew: (items) => renew(worker, table, items, { keyOf: () => key, leaseMs }),
    onRenewed({ renewed, lost, endsAtMs }) {
      if (renewed.length > 0) lease = { ...lease, endsAtMs };
      isLost = lost.length > 0;
    },
  });
  const isAlive = (): boolean => !isLost && remainingMs(lease, worker.clock) > 0;
  while (!leased.aborted && isAlive()) {
    await sleep(leaseMs / 30, leased);
    if (!leased.aborted) await renewer.renewDue().catch(onError);
  }
}
