import { sleep } from '../../kernel/clock.ts';
import type { Service } from '../../kernel/service.ts';
import { createNamedLease } from './named-lease.ts';
import type { Worker } from './work.ts';

/**
 * Gauges about the database have the same values in every replica, so only the holder of a named lease exports them:
 * two replicas would double every sum. Every round replaces all series, so that those of deleted queues, topics or
 * destinations disappear. While there is no lease, or the last measurement failed, there are no series at all.
 */
export type Gauges = Readonly<{
  gauges: readonly ResettableGauge[];
  /** Reads the database, and returns a function that sets the gauges. */
  measure: () => Promise<() => void>;
  /** Default: 15 s, as metrics are usually scraped. */
  everyMs?: number;
}>;

type ResettableGauge = Readonly<{ reset(): void; remove(labels: object): void }>;

/** At most this share of the time goes to measuring: expensive rounds run less often. */
const share = 0.05;

export function createGauges(
  worker: Worker,
  options: Gauges &
    Readonly<{
      /** Of the lease: `jobs.gauges`. */
      name: string;
      log: Readonly<{ warn: (facts: object, message: string) => void }>;
    }>,
): Service {
  clearGauges(options);
  return createNamedLease(worker, {
    name: options.name,
    work: (signal, beat) => exportGauges(options, { signal, beat }),
    onError: (error) => options.log.warn({ err: error, lease: options.name }, 'failed to measure gauges'),
  });
}

/** Until the signal aborts or a measurement fails; the lease is then given back, and taken again soon. */
async function exportGauges(
  gauges: Gauges,
  { signal, beat }: Readonly<{ signal: AbortSignal; beat: () => void }>,
): Promise<void> {
  const { measure, everyMs = 15_000 } = gauges;
  try {
    while (!signal.aborted) {
      const startMs = performance.now();
      const set = await measure();
      // Without a pause in between, so that no scrape sees half of a round.
      clearGauges(gauges);
      set();
      beat();
      await sleep(Math.max(everyMs, (performance.now() - startMs) / share), signal);
    }
  } finally {
    clearGauges(gauges);
  }
}

/** Removes all series. */
export function clearGauges({ gauges }: Pick<Gauges, 'gauges'>): void {
  for (const gauge of gauges) {
    gauge.reset();
    // Without labels a reset leaves a zero, which would distort an average over the replicas.
    gauge.remove({});
  }
}
