import { backoffMs, type Backoff } from '../../kernel/backoff.ts';

/**
 * A job's status and every legal change of it, as pure functions. The SQL of the slice says the same in its WHERE
 * and SET clauses; a property test drives both with the same random commands and compares.
 *
 *   pending, failed --due, claimed-->              running
 *   running --done-->                              completed
 *           --failed, a retry is left-->           failed, and due again after its backoff
 *           --failed, none is left; or not retryable--> dead_letter
 *           --snoozed, given back, or told to come later--> pending or failed as it was, and one deferral more
 *   running --never begun, given back-->           pending or failed as it was, at no cost
 *   running --lease over-->                        as failed
 *   pending, running, failed --a person cancels--> dead_letter, cancelled
 *   dead_letter --a person requeues-->             pending, with a new budget
 *   dead_letter --a person discards-->             dead_letter, discarded
 *
 * `retry_count` is what the seed says: the number of failures, and at `max_retries` of them the job is dead. It
 * changes when an attempt ends in failure and when a person requeues, and at no other time. Deferrals cost no
 * retry, but they are bounded: beyond `max_deferrals` each is a failure, so nothing goes round for ever.
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

/** How an attempt ended. `deferred` says nothing about the job: it was snoozed, given back, or whoever does the work was busy: then it waits for its backoff at least. */
export type AttemptEnd =
  | Readonly<{ end: 'completed' }>
  | Readonly<{ end: 'failed'; isRetryable: boolean; retryAfterMs?: number | undefined }>
  | Readonly<{ end: 'deferred'; delayMs: number; isBusy?: boolean }>
  /** It was claimed and never begun: as if nobody had claimed it. */
  | Readonly<{ end: 'unstarted' }>
  | Readonly<{ end: 'lease_over' }>;

export type Limits = Readonly<{ maxDeferrals: number; backoff: Backoff }>;

/** The job afterwards, and in how many milliseconds it is due again; null where it is not. */
export type Ended = Readonly<{ job: JobState; dueInMs: number | null }>;

function isClaimable(job: JobState): boolean {
  return job.status === 'pending' || job.status === 'failed';
}

export function startAttempt(job: JobState): JobState | null {
  return isClaimable(job) ? { ...job, status: 'running' } : null;
}

/** Only what runs can end. */
export function endAttempt(
  job: JobState,
  end: AttemptEnd,
  limits: Limits,
  random: () => number = Math.random,
): Ended | null {
  if (job.status !== 'running') return null;
  switch (end.end) {
    case 'completed':
      return { job: { ...job, status: 'completed' }, dueInMs: null };
    case 'failed':
      return fail(job, { isRetryable: end.isRetryable, retryAfterMs: end.retryAfterMs, limits, random });
    case 'unstarted':
      return { job: { ...job, status: waiting(job) }, dueInMs: 0 };
    case 'lease_over':
      return fail(job, { isRetryable: true, retryAfterMs: undefined, limits, random });
    case 'deferred': {
      if (job.deferrals >= limits.maxDeferrals)
        return fail(
          { ...job, deferrals: limits.maxDeferrals + 1 },
          { isRetryable: true, retryAfterMs: end.delayMs, limits, random },
        );
      const deferrals = job.deferrals + 1;
      const backoff = end.isBusy === true ? backoffMs(limits.backoff, deferrals, random) : 0;
      return {
        job: { ...job, status: waiting(job), deferrals },
        dueInMs: Math.max(backoff, end.delayMs),
      };
    }
  }
}

/** What it is while it waits: whether it has failed before is all that the two statuses tell. */
function waiting({ retryCount }: JobState): 'pending' | 'failed' {
  return retryCount > 0 ? 'failed' : 'pending';
}

function fail(
  job: JobState,
  how: Readonly<{
    isRetryable: boolean;
    retryAfterMs: number | undefined;
    limits: Limits;
    random: () => number;
  }>,
): Ended {
  const retryCount = job.retryCount + 1;
  if (!how.isRetryable || retryCount >= job.maxRetries)
    return { job: { ...job, status: 'dead_letter', retryCount }, dueInMs: null };
  const backoff = backoffMs(how.limits.backoff, retryCount, how.random);
  return { job: { ...job, status: 'failed', retryCount }, dueInMs: Math.max(backoff, how.retryAfterMs ?? 0) };
}

/** A person gives it a new budget. */
export function requeue(job: JobState): JobState | null {
  if (job.status !== 'dead_letter') return null;
  return { ...job, status: 'pending', retryCount: 0, deferrals: 0, resolution: null };
}

/** A person has seen it, and nothing follows. */
export function discard(job: JobState): JobState | null {
  return job.status === 'dead_letter' && job.resolution === null ? { ...job, resolution: 'discarded' } : null;
}

/** Also while it runs: its worker learns of it, and what it settles is stale. */
export function cancel(job: JobState): JobState | null {
  return isTerminal(job.status) ? null : { ...job, status: 'dead_letter', resolution: 'cancelled' };
}

const millisecondsPerPriority = 60_000;

/**
 * Where a job stands in its queue. Priority moves what is due when it is written forward by a minute per step, so
 * whatever waits long enough is overtaken no more; a delayed job or a retry stands where it is due. Nobody gets ahead
 * by naming a time that is over.
 */
export function sortAt(job: Readonly<{ runAt: Date; writtenAt: Date; priority: number }>): Date {
  const { runAt, writtenAt, priority } = job;
  return runAt <= writtenAt ? new Date(writtenAt.getTime() - priority * millisecondsPerPriority) : runAt;
}
