import { formatTimestamp } from '../../kernel/timestamp.ts';
import { rawJson, type RawJson } from '../../platform/http/raw-json.ts';
import { statuses } from '../domain/job.ts';
import type { DescribedQueue } from '../usecase/describe-queues.ts';
import type { ToldJob } from '../usecase/find-job.ts';
import type { Count, DeadGroup, FailedAttempt, Job, Pause, PersonsAction } from '../usecase/reading-ports.ts';

/** The slice's objects as JSON shows them. */

type Json = Readonly<Record<string, unknown>>;

/** PostgreSQL also has instants that JavaScript has not: the driver gives a number for `infinity`. */
function at(instant: Date | number | null): string | null {
  const isInstant = instant instanceof Date && !Number.isNaN(instant.getTime());
  return isInstant ? formatTimestamp(instant) : null;
}

const raw = (text: string | null): RawJson | null => (text === null ? null : rawJson(text));

export function presentJob(job: Job): Json {
  const isWaiting = job.status === 'pending' || job.status === 'failed';
  return {
    job_id: job.jobId,
    queue: job.queue,
    payload: raw(job.payloadText),
    status: job.status,
    retry_count: job.retryCount,
    max_retries: job.maxRetries,
    error_message: job.errorMessage,
    result: raw(job.resultText),
    dedupe_key: job.dedupeKey,
    priority: job.priority,
    run_at: isWaiting ? at(job.runAt) : null,
    created_at: at(job.createdAt),
    started_at: at(job.startedAt),
    completed_at: at(job.completedAt),
    resolution: job.resolution,
    needs_person: job.status === 'dead_letter' && job.resolution === null,
    deferrals: job.deferrals,
    progress: raw(job.progressText),
    trace: job.trace,
    lease: job.status === 'running' ? presentLease(job) : null,
    ...(job.payloadText === null ? { payload_omitted: true } : {}),
  };
}

function presentLease({ leaseOwner, leaseUntil, leaseEpoch }: Job): Json {
  return { owner: leaseOwner, until: at(leaseUntil), epoch: leaseEpoch };
}

/** One job by itself also tells its story. */
export function presentToldJob({ job, attempts, actions }: ToldJob): Json {
  return {
    ...presentJob(job),
    attempts: attempts.map(presentAttempt),
    actions: actions.map(presentAction),
  };
}

function presentAttempt(attempt: FailedAttempt): Json {
  return {
    retry_count: attempt.retryCount,
    status_to: attempt.statusTo,
    error: attempt.error,
    worker: attempt.worker,
    epoch: attempt.epoch,
    started_at: at(attempt.startedAt),
    ended_at: at(attempt.endedAt),
  };
}

function presentAction(action: PersonsAction): Json {
  return {
    action: action.action,
    status_from: action.statusFrom,
    status_to: action.statusTo,
    actor: action.actor,
    reason: action.reason,
    at: at(action.at),
  };
}

export function presentGroup({ queue, error, count, lastAt }: DeadGroup): Json {
  return { queue, error, count, last_at: at(lastAt) };
}

export function presentQueue(queue: DescribedQueue): Json {
  const { settings, counts, unresolved } = queue;
  const estimated = statuses.filter((status) => counts[status].isEstimate);
  return {
    queue: queue.name,
    configured: queue.isConfigured,
    has_target: queue.hasTarget,
    ...presentPause(queue.pause),
    max_retries: settings.maxRetries,
    timeout_ms: settings.timeoutMs,
    backoff: {
      initial_ms: settings.backoff.initialMs,
      max_ms: settings.backoff.maxMs,
      jitter: settings.backoff.jitter,
    },
    max_deferrals: settings.maxDeferrals,
    keep_completed: settings.keepCompleted,
    global_concurrency: settings.maxRunning,
    rate_limit:
      settings.rateLimit === null
        ? null
        : { count: settings.rateLimit.count, window_ms: settings.rateLimit.windowMs },
    counts: Object.fromEntries(statuses.map((status) => [status, total(counts[status])])),
    ...(estimated.length === 0 ? {} : { estimated_counts: estimated }),
    unresolved: total(unresolved),
    lag_seconds: queue.lagSeconds,
  };
}

const total = ({ total: count }: Count): number => count;

/** Null where it is not paused. */
export function presentPause(pause: Pause | null): Json {
  return {
    paused: pause !== null,
    paused_at: at(pause?.at ?? null),
    paused_by: pause?.by ?? null,
    paused_reason: pause?.reason ?? null,
  };
}
