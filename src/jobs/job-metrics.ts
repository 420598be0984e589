import { createBoundedLabels } from '../platform/telemetry/bounded-labels.ts';
import type { Logger } from '../platform/telemetry/logger.ts';
import type { Metrics } from '../platform/telemetry/metrics.ts';
import type { ClaimedJob } from './claim-jobs.ts';
import type { Settlement } from './settle-jobs.ts';

/**
 * How an attempt ended: `failed` will be retried, `deferred` cost no retry, and `stale` was dropped because the lease
 * was lost.
 */
export const outcomes = ['completed', 'failed', 'dead_letter', 'deferred', 'stale'] as const;
export type Outcome = (typeof outcomes)[number];

export type DeadJob = Readonly<{
  jobId: string;
  queue: string;
  error: string;
  /** Null if unknown. */
  retryCount: number | null;
}>;

/** `retryCount`, if known, is logged when the job is dead. */
export type CountedSettlement = Settlement & Readonly<{ job: Partial<Pick<ClaimedJob, 'retryCount'>> }>;

/**
 * Counts what this process does: the jobs that it accepts over HTTP or adds by a schedule, and the attempts that it
 * runs, settles for outside workers or reaps. The depth of the queues comes from the database (see upkeep).
 */
export type JobMetrics = Readonly<{
  enqueued(queue: string): void;
  claimed(queue: string, jobs: readonly Pick<ClaimedJob, 'dueForMs'>[]): void;
  /** `status`: the job's status after the settle; null for a stale write. */
  settled(queue: string, settlement: CountedSettlement, status: string | null): void;
  reaped(job: DeadJob & Readonly<{ status: 'failed' | 'dead_letter' }>): void;
}>;

const maxLoggedError = 1000;

/** `queues`: the configured queues, which get their own labels in any case. */
export function createJobMetrics(
  metrics: Metrics,
  log: Logger,
  queues: readonly string[],
  maxLabels?: number,
): JobMetrics {
  const labels = createBoundedLabels({ known: queues, limit: maxLabels });
  const { enqueued, startDelay, finished, duration, deadLetters } = registerMetrics(metrics, queues);

  const countDead = ({ jobId, queue, error, retryCount }: DeadJob): void => {
    deadLetters.inc({ queue: labels.labelOf(queue) });
    log.warn(
      { job_id: jobId, queue, error: error.slice(0, maxLoggedError), retry_count: retryCount },
      'job became a dead_letter and needs attention',
    );
  };

  return {
    enqueued: (queue) => enqueued.inc({ queue: labels.labelOf(queue) }),
    claimed(queue, jobs) {
      const label = labels.labelOf(queue);
      // A job may have been created with a time of 'infinity'.
      for (const { dueForMs } of jobs)
        if (Number.isFinite(dueForMs)) startDelay.observe({ queue: label }, dueForMs / 1000);
    },
    settled(queue, settlement, status) {
      const { job, ran } = settlement;
      const label = labels.labelOf(queue);
      const outcome = outcomeOf(settlement, status);
      finished.inc({ queue: label, outcome });
      if (ran !== null) duration.observe({ queue: label }, Math.max(0, ran.ms / 1000));
      if (outcome !== 'dead_letter') return;
      const retryCount = job.retryCount === undefined ? null : job.retryCount + 1;
      countDead({ jobId: job.jobId, queue, error: errorOf(settlement), retryCount });
    },
    reaped({ status, ...job }) {
      finished.inc({ queue: labels.labelOf(job.queue), outcome: status });
      if (status === 'dead_letter') countDead(job);
    },
  };
}

function registerMetrics(metrics: Metrics, queues: readonly string[]) {
  const enqueued = metrics.counter({
    name: 'jobs_enqueued_total',
    help: 'Jobs that this process has added to a queue.',
    labelNames: ['queue'],
  });
  const startDelay = metrics.histogram({
    name: 'jobs_start_delay_seconds',
    help: 'How long jobs had been due when this process claimed them.',
    labelNames: ['queue'],
    buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1800, 7200],
  });
  const finished = metrics.counter({
    name: 'jobs_finished_total',
    help: 'Attempts that this process has settled, by outcome.',
    labelNames: ['queue', 'outcome'],
  });
  const duration = metrics.histogram({
    name: 'jobs_duration_seconds',
    help: 'Duration of attempts, whatever their outcome.',
    labelNames: ['queue'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800],
  });
  const deadLetters = metrics.counter({
    name: 'jobs_dead_letter_total',
    help: 'Jobs that have become dead letters after their last failure.',
    labelNames: ['queue'],
  });

  for (const queue of queues) {
    enqueued.inc({ queue }, 0);
    deadLetters.inc({ queue }, 0);
    duration.zero({ queue });
    startDelay.zero({ queue });
    for (const outcome of outcomes) finished.inc({ queue, outcome }, 0);
  }
  return { enqueued, startDelay, finished, duration, deadLetters };
}

/** `status`: the job's status after the settle; null for a stale write. */
export function outcomeOf({ outcome }: Settlement, status: string | null): Outcome {
  if (status === null) return 'stale';
  if (status === 'completed' || status === 'dead_letter') return status;
  // A deferral too many counts as a failure, but the status does not show it.
  return outcome === 'deferred' ? 'deferred' : 'failed';
}

function errorOf(settlement: Settlement): string {
  switch (settlement.outcome) {
    case 'failed':
      return settlement.error;
    case 'deferred':
      return settlement.reason;
    case 'completed':
    case 'unstarted':
      return '';
  }
}
