import { sleep } from '../../kernel/clock.ts';
import type { Lease } from '../../kernel/lease.ts';
import type { Service } from '../../kernel/service.ts';
import { sql } from '../postgres/sql.ts';
import { workLeased } from './leased-work.ts';
import { claim, leaseIsOver, type Worker, type WorkTable } from './work.ts';

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
          await workLeased(
            worker,
            { table: leases, key: options.name, lease, ...options },
            stopping.signal,
            (leased) => options.work(leased, beat),
          );
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
