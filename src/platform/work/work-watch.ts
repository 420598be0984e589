import type { Metrics } from '../telemetry/metrics.ts';

/** What a process reports about its claims, its expired leases and its loops. */
export type WorkWatch = Readonly<{
  claimed(slice: string, seconds: number): void;
  /** Attempts that this process ended because their lease had expired. */
  reaped(slice: string, count: number): void;
  /** A loop calls it when it starts, and after every round without an error: at least once a minute if it works. */
  beat(slice: string, loop: string): void;
}>;

const claimBucketsSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

export function createWorkWatch(metrics: Metrics, slices: readonly string[]): WorkWatch {
  const claims = metrics.histogram({
    name: 'redrive_claim_duration_seconds',
    help: 'Duration of the statements that claim work.',
    labelNames: ['slice'],
    buckets: claimBucketsSeconds,
  });
  const reaped = metrics.counter({
    name: 'redrive_leases_reaped_total',
    help: 'Attempts that this process ended because their lease had expired.',
    labelNames: ['slice'],
  });
  const lastSuccess = metrics.gauge({
    name: 'redrive_loop_last_success_timestamp_seconds',
    help: 'When a loop of this process last finished a round without an error.',
    labelNames: ['slice', 'loop'],
  });
  for (const slice of slices) {
    claims.zero({ slice });
    reaped.inc({ slice }, 0);
    metrics.staleWrites.inc({ slice }, 0);
  }
  return {
    claimed: (slice, seconds) => claims.observe({ slice }, seconds),
    reaped: (slice, count) => reaped.inc({ slice }, count),
    beat: (slice, loop) => lastSuccess.set({ slice, loop }, Date.now() / 1000),
  };
}
