import { messageOf } from '../kernel/errors.ts';
import { outcomeOf } from '../jobs/job-metrics.ts';
import type { ReapedJob } from '../jobs/run/reap-jobs.ts';
import type { Settlement } from '../jobs/settle-jobs.ts';

/** Events of the workers, for logs and metrics. */
export type JobEvent =
  | Readonly<{
      type: 'finished';
      queue: string;
      jobId: string;
      outcome: JobOutcome;
      /** How long the handler ran; null if it was not started. */
      seconds: number | null;
      error: string | null;
    }>
  /** A job of a lost worker, of any process and queue, was released. */
  | Readonly<{
      type: 'reaped';
      queue: string;
      jobId: string;
      outcome: Extract<JobOutcome, 'failed' | 'dead_letter'>;
      error: string;
    }>
  /** Something failed and will be retried. */
  | Readonly<{ type: 'trouble'; what: string; error: unknown }>;

/**
 * `failed`: it will be retried. `dead_letter`: it will not. `deferred`: snoozed or busy. `stale`: its lease was lost, so
 * that its outcome is ignored.
 */
export type JobOutcome = 'completed' | 'failed' | 'dead_letter' | 'deferred' | 'stale';

export function finished(queue: string, settlement: Settlement, status: string | null): JobEvent {
  const { job, ran } = settlement;
  return {
    type: 'finished',
    queue,
    jobId: job.jobId,
    outcome: outcomeOf(settlement, status),
    seconds: ran === null ? null : ran.ms / 1000,
    error: settlement.outcome === 'failed' ? settlement.error : null,
  };
}

export function reaped({ queue, jobId, status, error }: ReapedJob): JobEvent {
  return { type: 'reaped', queue, jobId, outcome: status, error };
}

/** The default listener: writes what needs attention to standard error. */
export function logEvent(event: JobEvent): void {
  const line = lineOf(event);
  if (line !== null) process.stderr.write(`redrive: ${line}\n`);
}

export function lineOf(event: JobEvent): string | null {
  switch (event.type) {
    case 'finished':
      if (event.outcome === 'dead_letter') return deadLine(event);
      if (event.outcome === 'stale')
        return `dropped the outcome of job ${event.jobId} of ${event.queue}: its lease was lost`;
      return null;
    case 'reaped':
      return event.outcome === 'dead_letter'
        ? deadLine(event)
        : `retrying job ${event.jobId} of ${event.queue}: ${event.error}`;
    case 'trouble':
      return `${event.what}: ${messageOf(event.error)}`;
  }
}

type DeadJob = Readonly<{ queue: string; jobId: string; error: string | null }>;

function deadLine({ queue, jobId, error }: DeadJob): string {
  return `job ${jobId} of ${queue} is a dead_letter: ${error ?? 'deferred too often'}`;
}
