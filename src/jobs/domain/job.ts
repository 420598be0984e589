/**
 * A job's status and its legal changes. The claim, settle and reap statements make most of them; a property test runs
 * the same random commands against the SQL and a model (tests/support/job-model.ts) and compares.
 *
 *   pending, failed --claimed when due-->          running
 *   running --completed-->                         completed
 *           --failed, a retry is left-->           failed, due again after its backoff
 *           --failed, no retry left or not retryable--> dead_letter
 *           --snoozed, released or busy-->         pending or failed as before, with one more deferral
 *           --not started, given back-->           pending or failed as before, at no cost
 *           --lease expired-->                     as failed
 *   pending, running, failed --a person cancels--> dead_letter, cancelled
 *   dead_letter --a person requeues-->             pending, with a fresh retry count
 *   dead_letter --a person discards-->             dead_letter, discarded
 *
 * `retry_count` is the number of failures; at `max_retries` the job is dead. It changes only when an attempt fails and
 * when a person requeues. Deferrals cost no retry, but each one beyond `max_deferrals` is a failure, so that no job is
 * deferred for ever.
 */
export const statuses = ['pending', 'running', 'completed', 'failed', 'dead_letter'] as const;
export type Status = (typeof statuses)[number];

export const resolutions = ['cancelled', 'discarded'] as const;
export type Resolution = (typeof resolutions)[number];

export function isTerminal(status: Status): boolean {
  return status === 'completed' || status === 'dead_letter';
}

export type JobState = Readonly<{
  status: Status;
  retryCount: number;
  maxRetries: number;
  deferrals: number;
  resolution: Resolution | null;
}>;

export function requeue(job: JobState): JobState | null {
  if (job.status !== 'dead_letter') return null;
  return { ...job, status: 'pending', retryCount: 0, deferrals: 0, resolution: null };
}

export function discard(job: JobState): JobState | null {
  return job.status === 'dead_letter' && job.resolution === null ? { ...job, resolution: 'discarded' } : null;
}

/** Also while it runs: its worker is told, and its settle is stale. */
export function cancel(job: JobState): JobState | null {
  return isTerminal(job.status) ? null : { ...job, status: 'dead_letter', resolution: 'cancelled' };
}
