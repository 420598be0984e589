import type { Clock } from '../../kernel/clock.ts';
import type { Logger } from '../../platform/telemetry/logger.ts';
import type { Metrics } from '../../platform/telemetry/metrics.ts';
import type { ClaimedJob, JobEnd } from '../usecase/ports.ts';
import type { QueueLabels } from './queue-labels.ts';

/**
 * How an attempt ended: `failed` has a retry left, `deferred` was put off and has cost nothing, and `stale` is what a
 * worker wanted to write down when the job was no longer its own.
 */
export const outcomes = ['completed', 'failed', 'dead_letter', 'deferred', 'stale'] as const;
export type Outcome = (typeof outcomes)[number];

export type DeadJob = Readonly<{
  jobId: string;
  queue: string;
  error: string;
  /** Null where whoever tells of it does not know. */
  retryCount: number | null;
}>;

/** Whoever has the whole job at hand gives it, so that the log can tell how often it has failed. */
export type ToldEnd = JobEnd & Readonly<{ job: Partial<Pick<ClaimedJob, 'retryCount'>> }>;

/**
 * Counts what this process does: the jobs that it takes over HTTP or adds by a schedule, the attempts that it runs,
 * settles for others or ends for lost workers. What workers in other processes do is counted there; how much waits
 * and how much is dead in all is in the figures of the database.
 */
export type JobMetrics = Readonly<{
  enqueued(queue: string, count?: number): void;
  /** `seconds`: how long the attempt ran, null where nobody knows. */
  finished(queue: string, outcome: Outcome, seconds: number | null): void;
  /** A job has died by itself: neither cancelled nor discarded. Logs it, too. */
  deadLetter(dead: DeadJob): void;
  /** The end of an attempt as a worker wrote it down: finished, and dead if that is what it came to. */
  ended(queue: string, end: ToldEnd, status: string | null): void;
  /** An attempt whose worker was lost; nobody knows how long it ran. */
  lost(job: DeadJob & Readonly<{ status: 'failed' | 'dead_letter' }>): void;
}>;

export function createJobMetrics(
  metrics: Metrics,
  log: Logger,
  { labels, clock }: Readonly<{ labels: QueueLabels; clock: Clock }>,
): JobMetrics {
  const enqueued = metrics.counter({
    name: 'jobs_enqueued_total',
    help: 'Jobs that this process has added to a queue.',
    labelNames: ['queue'],
  });
  const finished = metrics.counter({
    name: 'jobs_finished_total',
    help: 'Attempts whose end this process has written down, by how they ended.',
    labelNames: ['queue', 'outcome'],
  });
  const duration = metrics.histogram({
    name: 'jobs_duration_seconds',
    help: 'Time that an attempt ran, whatever came of it.',
    labelNames: ['queue'],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800],
  });
  const deadLetters = metrics.counter({
    name: 'jobs_dead_letter_total',
    help: 'Jobs that have become dead letters by their failures.',
    labelNames: ['queue'],
  });

  const count: Pick<JobMetrics, 'finished' | 'deadLetter'> = {
    finished(queue, outcome, seconds) {
      const label = labels.labelOf(queue);
      finished.inc({ queue: label, outcome });
      if (seconds !== null) duration.observe({ queue: label }, Math.max(0, seconds));
    },
    deadLetter({ jobId, queue, error, retryCount }) {
      deadLetters.inc({ queue: labels.labelOf(queue) });
      log.warn(
        { job_id: jobId, queue, error: error.slice(0, maxLoggedError), retry_count: retryCount },
        'a job has become a dead_letter and needs a person',
      );
    },
  };

  return {
    ...count,
    lost({ status, ...job }) {
      count.finished(job.queue, status, null);
      if (status === 'dead_letter') count.deadLetter(job);
    },
    enqueued: (queue, many = 1) => enqueued.inc({ queue: labels.labelOf(queue) }, many),
    ended(queue, end, status) {
      const outcome = outcomeOf(end, status);
      const { job, startedAt } = end;
      const seconds = startedAt === null ? null : (clock.now().getTime() - startedAt.getTime()) / 1000;
      count.finished(queue, outcome, seconds);
      if (outcome !== 'dead_letter') return;
      const retryCount = job.retryCount === undefined ? null : job.retryCount + 1;
      count.deadLetter({ jobId: job.jobId, queue, error: errorOf(end), retryCount });
    },
  };
}

const maxLoggedError = 1000;

/** `status` is how the job stands after it. */
export function outcomeOf(end: JobEnd, status: string | null): Outcome {
  if (status === null) return 'stale';
  if (status === 'completed' || status === 'dead_letter') return status;
  // Put off once too often counts as a failure, but the job does not say so: it waits either way.
  return end.end === 'deferred' ? 'deferred' : 'failed';
}

function errorOf(end: JobEnd): string {
  switch (end.end) {
    case 'failed':
      return end.error;
    case 'deferred':
      return end.reason;
    case 'completed':
    case 'unstarted':
      return '';
  }
}
