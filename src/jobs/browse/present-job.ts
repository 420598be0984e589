import { formatInstant } from '../../kernel/timestamp.ts';
import { rawJson, type RawJson } from '../../platform/http/raw-json.ts';
import { statuses } from '../domain/job.ts';
import { presentPause } from '../route-parts.ts';
import type { Facets } from './count-facets.ts';
import type { DeadGroup } from './dead-groups.ts';
import type { FailedAttempt, JobAction, JobDetails } from './find-job.ts';
import type { Job } from './job-row.ts';
import type { Count } from './list-jobs.ts';
import type { ListedQueue, TargetDown } from './list-queues.ts';

export type Json = Readonly<Record<string, unknown>>;

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
    run_at: isWaiting ? formatInstant(job.runAt) : null,
    created_at: formatInstant(job.createdAt),
    started_at: formatInstant(job.startedAt),
    completed_at: formatInstant(job.completedAt),
    resolution: job.resolution,
    needs_attention: job.status === 'dead_letter' && job.resolution === null,
    deferrals: job.deferrals,
    progress: raw(job.progressText),
    trace: job.trace,
    created_by: job.createdBy,
    fingerprint: job.fingerprint,
    lease: job.status === 'running' ? presentLease(job) : null,
    ...(job.payloadText === null ? { payload_omitted: true } : {}),
  };
}

function presentLease({ leaseOwner, leaseUntil, leaseEpoch }: Job): Json {
  return { owner: leaseOwner, until: formatInstant(leaseUntil), epoch: leaseEpoch };
}

export function presentJobDetails({ job, attempts, actions }: JobDetails): Json {
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
    error_class: attempt.errorClass,
    stack: attempt.stack,
    fingerprint: attempt.fingerprint,
    worker: attempt.worker,
    epoch: attempt.epoch,
    started_at: formatInstant(attempt.startedAt),
    ended_at: formatInstant(attempt.endedAt),
  };
}

function presentAction(action: JobAction): Json {
  return {
    action: action.action,
    status_from: action.statusFrom,
    status_to: action.statusTo,
    actor: action.actor,
    reason: action.reason,
    at: formatInstant(action.at),
  };
}

export function presentGroup({ queue, fingerprint, error, count, lastAt }: DeadGroup): Json {
  return { queue, fingerprint, error, count, last_at: formatInstant(lastAt) };
}

export function presentFacets({ total: all, byStatus, byQueue }: Facets): Json {
  const present = (value: string, { total: count, isEstimate }: Count): Json => ({
    value,
    count,
    ...(isEstimate ? { is_estimate: true } : {}),
  });
  return {
    total_count: all.total,
    ...(all.isEstimate ? { total_is_estimate: true } : {}),
    facets: {
      status: byStatus.map((counted) => present(counted.status, counted)),
      queue: byQueue.map((counted) => present(counted.queue, counted)),
    },
  };
}

export function presentQueue(queue: ListedQueue): Json {
  const { settings, counts, unresolved } = queue;
  const estimated = statuses.filter((status) => counts[status].isEstimate);
  return {
    queue: queue.name,
    configured: queue.isConfigured,
    has_target: queue.hasTarget,
    ...presentPause(queue.pause),
    target_down: presentTargetDown(queue.targetDown),
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

function presentTargetDown(down: TargetDown | null): Json | null {
  if (down === null) return null;
  return {
    since: formatInstant(down.since),
    reason: down.reason,
    next_probe_at: formatInstant(down.nextProbeAt),
  };
}

const total = ({ total: count }: Count): number => count;
