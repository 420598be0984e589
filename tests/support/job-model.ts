import { backoffMs, type Backoff } from '../../src/kernel/backoff.ts';
import type { JobState } from '../../src/jobs/domain/job.ts';

/** The state machine of jobs as pure functions, to compare the SQL of the slice with. */

/** How an attempt ended. `isBusy`: the job waits for its backoff at least. */
export type AttemptEnd =
  | Readonly<{ outcome: 'completed' }>
  | Readonly<{ outcome: 'failed'; isRetryable: boolean; retryAfterMs?: number | undefined }>
  | Readonly<{ outcome: 'deferred'; delayMs: number; isBusy?: boolean }>
  /** Claimed and given back. */
  | Readonly<{ outcome: 'unstarted' }>
  | Readonly<{ outcome: 'lease_expired' }>;

export type Limits = Readonly<{ maxDeferrals: number; backoff: Backoff }>;

/** The job afterwards, and when it is due again; null if it is not. */
export type Ended = Readonly<{ job: JobState; dueInMs: number | null }>;

function isClaimable(job: JobState): boolean {
  return job.status === 'pending' || job.status === 'failed';
}

export function startAttempt(job: JobState): JobState | null {
  return isClaimable(job) ? { ...job, status: 'running' } : null;
}

/** Null unless the job is running. */
export function endAttempt(
  job: JobState,
  end: AttemptEnd,
  limits: Limits,
  random: () => number = Math.random,
): Ended | null {
  if (job.status !== 'running') return null;
  switch (end.outcome) {
    case 'completed':
      return { job: { ...job, status: 'completed' }, dueInMs: null };
    case 'failed':
      return fail(job, { isRetryable: end.isRetryable, retryAfterMs: end.retryAfterMs, limits, random });
    case 'unstarted':
      return { job: { ...job, status: waiting(job) }, dueInMs: 0 };
    case 'lease_expired':
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

/** The status of a waiting job says only whether it has failed before. */
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

const millisecondsPerPriority = 60_000;

/**
 * The place of a job in its queue. Each step of priority moves a job that is due when it is written forward by a minute,
 * so that no job waits for ever; a delayed job or a retry is placed at its due time. A `runAt` in the past counts as
 * now.
 */
export function sortAt(job: Readonly<{ runAt: Date; writtenAt: Date; priority: number }>): Date {
  const { runAt, writtenAt, priority } = job;
  return runAt <= writtenAt ? new Date(writtenAt.getTime() - priority * millisecondsPerPriority) : runAt;
}
