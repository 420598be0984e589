import { messageOf } from '../kernel/errors.ts';
import { outcomeOf } from '../jobs/job-metrics.ts';
import type { ReapedJob } from '../jobs/run/reap-jobs.ts';
import type { Settlement } from '../jobs/settle-jobs.ts';
import type { JobEvent } from './job-event.ts';

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
