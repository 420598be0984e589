import { sleep } from '../../kernel/clock.ts';
import type { Service } from '../../kernel/service.ts';
import { NamedLeases } from './named-leases.ts';
import type { Worker } from './work.ts';

/**
 * Work that one process does at a time. The process that has the named lease runs `work`, which gets a signal that
 * aborts when the lease is lost or could not be renewed in time. Another process takes over when the lease has expired,
 * or soon after the process stops.
 */
export type NamedLeaseOptions = Readonly<{
  /** The slice and the loop: `jobs.gauges`. */
  name: string;
  /** Calls `beat` after every round without an error. */
  work: (leased: AbortSignal, beat: () => void) => Promise<void>;
  onError: (error: unknown) => void;
}>;

/** After work that failed: another process may have more luck. */
const restMs = 5000;

export function createNamedLease(worker: Worker, { name, work, onError }: NamedLeaseOptions): Service {
  const leases = worker.leases ?? new NamedLeases(worker, { onError });
  const stopping = new AbortController();
  const [slice = '', loop = slice] = name.split('.');
  const beat = (): void => worker.watch?.beat(slice, loop);
  let running = Promise.resolve();

  const workOnce = async (): Promise<void> => {
    const held = await leases.take({ name, onTaken: beat }, stopping.signal);
    if (held === null) return;
    try {
      await work(AbortSignal.any([held.leased, stopping.signal]), beat);
    } finally {
      await leases.giveBack(held);
    }
    beat();
  };

  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await workOnce().catch(onError);
      await sleep(restMs, stopping.signal);
    }
  };

  return {
    name: `lease ${name}`,
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
