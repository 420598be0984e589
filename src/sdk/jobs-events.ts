import type { ReapedJob } from '../jobs/infra/postgres-job-store.ts';
import type { JobEnd } from '../jobs/usecase/ports.ts';

/** What workers tell about their work: for logs and metrics. */
export type JobEvent =
  | Readonly<{
      type: 'finished';
      queue: string;
      jobId: string;
      outcome: JobOutcome;
      /** From the start of the handler until its end was written down; null where it was not started. */
      seconds: number | null;
      error: string | null;
    }>
  /** An attempt of a lost worker, of whatever process and queue, was ended. */
  | Readonly<{
      type: 'reaped';
      queue: string;
      jobId: string;
      outcome: Extract<JobOutcome, 'failed' | 'dead_letter'>;
      error: string;
    }>
  /** Something failed that is tried again. */
  | Readonly<{ type: 'trouble'; what: string; error: unknown }>;

/**
 * `failed`: it is tried again. `dead_letter`: it is not. `deferred`: snoozed, given back or busy. `stale`: it was
 * somebody else's by then, so that its end counts for nothing.
 */
export type JobOutcome = 'completed' | 'failed' | 'dead_letter' | 'deferred' | 'stale';

export function finished(queue: string, end: JobEnd, status: string | null): JobEvent {
  return {
    type: 'finished',
    queue,
    jobId: end.job.jobId,
    outcome: outcomeOf(end, status),
    seconds: end.startedAt === null ? null : Math.max(0, Date.now() - end.startedAt.getTime()) / 1000,
    error: end.end === 'failed' ? end.error : null,
  };
}

export function reaped({ queue, jobId, status, error }: ReapedJob): JobEvent {
  return { type: 'reaped', queue, jobId, outcome: status, error };
}

function outcomeOf({ end }: JobEnd, status: string | null): JobOutcome {
  if (status === null) return 'stale';
  if (status === 'dead_letter' || status === 'completed') return status;
  return end === 'deferred' ? 'deferred' : 'failed';
}

/** Where nobody else listens: what somebody has to know of goes to the standard error output. */
export function logEvent(event: JobEvent): void {
  const line = lineOf(event);
  if (line !== null) process.stderr.write(`redrive: ${line}\n`);
}

export function lineOf(event: JobEvent): string | null {
  switch (event.type) {
    case 'finished':
      if (event.outcome === 'dead_letter') return deadLine(event);
      if (event.outcome === 'stale')
        return `the end of job ${event.jobId} of ${event.queue} came too late and was dropped`;
      return null;
    case 'reaped':
      return event.outcome === 'dead_letter'
        ? deadLine(event)
        : `an attempt of job ${event.jobId} of ${event.queue} was ended, and it is tried again: ${event.error}`;
    case 'trouble':
      return `${event.what}: ${event.error instanceof Error ? event.error.message : String(event.error)}`;
  }
}

type Died = Readonly<{ queue: string; jobId: string; error: string | null }>;

function deadLine({ queue, jobId, error }: Died): string {
  return `job ${jobId} of ${queue} is a dead_letter: ${error ?? 'put off too often'}`;
}
