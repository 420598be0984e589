import { sleep } from '../../kernel/clock.ts';
import { remainingMs, type Lease } from '../../kernel/lease.ts';
import type { Service } from '../../kernel/service.ts';
import { sql } from '../postgres/sql.ts';
import { createLeaseRenewer } from './lease-renewer.ts';
import { claim, leaseIsOver, release, renew, type Worker, type WorkTable } from './work.ts';

/**
 * Work that one process does at a time. The process that has the named lease runs `work`, which gets a signal that
 * aborts when the lease is lost or could not be renewed in time. Another process takes over when the lease has expired,
 * or soon after the process stops.
 */
export type NamedLeaseOptions = Readonly<{
  /** The slice and the loop: `jobs.gauges`. */
  name: string;
  leaseMs: number;
  /** Calls `beat` after every round without an error. */
  work: (leased: AbortSignal, beat: () => void) => Promise<void>;
  onError: (error: unknown) => void;
}>;

const leases: WorkTable = {
  slice: 'platform',
  table: sql`platform.leases`,
  key: sql`name`,
  keyArray: sql`text[]`,
};

export function createNamedLease(worker: Worker, options: NamedLeaseOptions): Service {
  const stopping = new AbortController();
  const [slice = '', loop = slice] = options.name.split('.');
  const beat = (): void => worker.watch?.beat(slice, loop);
  let running = Promise.resolve();

  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      try {
        const lease = await take(worker, options);
        if (lease !== undefined)
          await workLeased(worker, options, lease, { stopping: stopping.signal, beat });
        beat();
      } catch (error) {
        options.onError(error);
      }
      await sleep(options.leaseMs / 3, stopping.signal);
    }
  };

  return {
    name: `lease ${options.name}`,
    async start() {
      beat();
      running = run();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

async function take(worker: Worker, { name, leaseMs }: NamedLeaseOptions): Promise<Lease | undefined> {
  await worker.db.query(sql`INSERT INTO platform.leases (name) VALUES (${name}) ON CONFLICT DO NOTHING`);
  const claimed = await claim<{ name: string }>(worker, leases, {
    where: sql`t.name = ${name} AND ${leaseIsOver}`,
    orderBy: sql`t.name`,
    limit: 1,
    leaseMs,
    set: sql`lease_lost = false`,
    returning: sql`t.name`,
  });
  return claimed.rows.length === 1 ? claimed.lease : undefined;
}

/** Works and renews in parallel; returns when the work is done, the lease is lost or the process stops. */
async function workLeased(
  worker: Worker,
  options: NamedLeaseOptions,
  lease: Lease,
  { stopping, beat }: Readonly<{ stopping: AbortSignal; beat: () => void }>,
): Promise<void> {
  const ended = new AbortController();
  const leased = AbortSignal.any([ended.signal, stopping]);
  const renewing = keepRenewing(worker, options, lease, leased).finally(() => ended.abort());
  try {
    await options.work(leased, beat);
  } finally {
    ended.abort();
    await renewing;
    await release(worker.db, leases, { keys: [options.name], epoch: lease.epoch });
  }
}

/** Returns when the lease is lost or has expired on our own clock. */
async function keepRenewing(
  worker: Worker,
  { name, leaseMs, onError }: NamedLeaseOptions,
  claimed: Lease,
  leased: AbortSignal,
): Promise<void> {
  let lease = claimed;
  let isLost = false;
  const renewer = createLeaseRenewer<Readonly<{ name: string; lease: Lease }>>({
    clock: worker.clock,
    leaseMs,
    leased: () => [{ name, lease }],
    renew: (items) => renew(worker, leases, items, { keyOf: (item) => item.name, leaseMs }),
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
