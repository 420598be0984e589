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
  /** Attempts of lost workers, of whatever process, were ended. */
  | Readonly<{ type: 'reaped'; count: number }>
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

function lineOf(event: JobEvent): string | null {
  switch (event.type) {
    case 'finished':
      if (event.outcome === 'dead_letter')
        return `job ${event.jobId} of ${event.queue} is a dead_letter: ${event.error ?? 'put off too often'}`;
      if (event.outcome === 'stale')
        return `the end of job ${event.jobId} of ${event.queue} came too late and was dropped`;
      return null;
    case 'reaped':
      return `${event.count} attempts of lost workers were ended`;
    case 'trouble':
      return `${event.what}: ${event.error instanceof Error ? event.error.message : String(event.error)}`;
  }
}
