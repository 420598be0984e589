import { sleep, type Clock } from '../../kernel/clock.ts';
import type { Service } from '../../kernel/service.ts';
import { sql } from './sql.ts';
import { claim, heldRows, leaseIsOver, renew, settle, type Worker, type WorkTable } from './work.ts';

/**
 * What one process does at a time: the holder of the named lease runs `work`, which gets a signal that aborts
 * when the lease could not be renewed in time. Another process takes over when the lease is over, or at once
 * when the holder stops.
 */
export type NamedLeaseOptions = Readonly<{
  name: string;
  leaseMs: number;
  work: (held: AbortSignal) => Promise<void>;
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
  let running = Promise.resolve();

  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      try {
        const epoch = await take(worker, options);
        if (epoch !== undefined) await hold(worker, options, epoch, stopping.signal);
      } catch (error) {
        options.onError(error);
      }
      await sleep(options.leaseMs / 3, stopping.signal);
    }
  };

  return {
    name: `lease ${options.name}`,
    async start() {
      running = run();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

async function take(worker: Worker, { name, leaseMs }: NamedLeaseOptions): Promise<bigint | undefined> {
  await worker.db.query(sql`INSERT INTO platform.leases (name) VALUES (${name}) ON CONFLICT DO NOTHING`);
  const claimed = await claim<{ name: string }>(worker, leases, {
    where: sql`t.name = ${name} AND ${leaseIsOver}`,
    orderBy: sql`t.name`,
    limit: 1,
    leaseMs,
    set: sql`lease_lost = false`,
    returning: sql`t.name`,
  });
  return claimed.rows.length === 1 ? claimed.lease.epoch : undefined;
}

/** Works and renews side by side; returns when the work is done, the lease is lost or the process stops. */
async function hold(
  worker: Worker,
  { name, leaseMs, work, onError }: NamedLeaseOptions,
  epoch: bigint,
  stopping: AbortSignal,
): Promise<void> {
  const ended = new AbortController();
  const held = AbortSignal.any([ended.signal, stopping]);
  const renewing = keepRenewing(worker, { name, leaseMs, epoch, onError }, held).finally(() => ended.abort());
  try {
    await work(held);
  } finally {
    ended.abort();
    await renewing;
    await settle(worker.db, leases, {
      held: heldRows(leases, [name], epoch),
      count: 1,
      guard: sql`true`,
      set: sql`name = t.name`,
      returning: sql`t.name`,
    });
  }
}

async function keepRenewing(
  worker: Worker,
  lease: Readonly<{ name: string; leaseMs: number; epoch: bigint; onError: (error: unknown) => void }>,
  held: AbortSignal,
): Promise<void> {
  let endsAtMs = worker.clock.monotonicMs() + lease.leaseMs;
  let isLocked = false;
  while (!held.aborted) {
    await sleep(lease.leaseMs / (isLocked ? 20 : 3), held);
    if (held.aborted) return;
    try {
      const renewed = await renew(worker, leases, {
        keys: [lease.name],
        epochs: [lease.epoch],
        leaseMs: lease.leaseMs,
      });
      isLocked = renewed.locked.length > 0;
      if (isLocked ? isOver(endsAtMs, worker.clock) : renewed.keys.length === 0) return;
      if (!isLocked) endsAtMs = renewed.endsAtMs;
    } catch (error) {
      lease.onError(error);
      if (isOver(endsAtMs, worker.clock)) return;
    }
  }
}

function isOver(endsAtMs: number, clock: Clock): boolean {
  return clock.monotonicMs() >= endsAtMs;
}
