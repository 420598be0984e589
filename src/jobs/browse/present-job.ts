import { createItemCover, type ItemCover } from '../../kernel/protect/item-cover.ts';
import { maskBeginning, type Masks } from '../../kernel/protect/protection.ts';
import { formatInstant } from '../../kernel/timestamp.ts';
import { rawJson, type RawJson } from '../../platform/http/raw-json.ts';
import { statuses } from '../domain/job.ts';
import { presentPause } from '../route-parts.ts';
import type { Facets } from './count-facets.ts';
import { groupErrorLength, type DeadGroup } from './dead-groups.ts';
import type { FailedAttempt, JobAction, JobDetails } from './find-job.ts';
import { listedErrorLength, type Job } from './job-row.ts';
import type { Count } from './list-jobs.ts';
import type { ListedQueue, TargetDown } from './list-queues.ts';

export type Json = Readonly<Record<string, unknown>>;

const raw = (text: string | null): RawJson | null => (text === null ? null : rawJson(text));

function presentJob(job: Job, masks: Masks): Json {
  const cover = createItemCover(masks);
  return { ...jobFields(job, cover), ...cover.mark() };
}

/** Lists cut long errors. */
export function presentListedJob(job: Job, masks: Masks): Json {
  const error = maskBeginning(masks, job.errorMessage, listedErrorLength);
  return presentJob({ ...job, errorMessage: error }, masks);
}

function jobFields(job: Job, cover: ItemCover): Json {
  const isWaiting = job.status === 'pending' || job.status === 'failed';
  return {
    job_id: job.jobId,
    queue: job.queue,
    payload: raw(cover.json(job.payloadText)),
    status: job.status,
    retry_count: job.retryCount,
    max_retries: job.maxRetries,
    error_message: cover.text(job.errorMessage),
    result: raw(cover.json(job.resultText)),
    dedupe_key: cover.keyText(job.dedupeKey),
    priority: job.priority,
    run_at: isWaiting ? formatInstant(job.runAt) : null,
    created_at: formatInstant(job.createdAt),
    started_at: formatInstant(job.startedAt),
    completed_at: formatInstant(job.completedAt),
    resolution: job.resolution,
    needs_attention: job.status === 'dead_letter' && job.resolution === null,
    deferrals: job.deferrals,
    progress: raw(cover.json(job.progressText)),
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

export function presentJobDetails({ job, attempts, actions }: JobDetails, masks: Masks): Json {
  const cover = createItemCover(masks);
  return {
    ...jobFields(job, cover),
    attempts: attempts.map((attempt) => presentAttempt(attempt, cover)),
    actions: actions.map((action) => presentAction(action, cover)),
    ...cover.mark(),
  };
}

function presentAttempt(attempt: FailedAttempt, cover: ItemCover): Json {
  return {
    retry_count: attempt.retryCount,
    status_to: attempt.statusTo,
    error: cover.text(attempt.error),
    error_class: cover.text(attempt.errorClass),
    stack: cover.text(attempt.stack),
    fingerprint: attempt.fingerprint,
    worker: attempt.worker,
    epoch: attempt.epoch,
    started_at: formatInstant(attempt.startedAt),
    ended_at: formatInstant(attempt.endedAt),
  };
}

function presentAction(action: JobAction, cover: ItemCover): Json {
  return {
    action: action.action,
    status_from: action.statusFrom,
    status_to: action.statusTo,
    actor: action.actor,
    reason: cover.text(action.reason),
    at: formatInstant(action.at),
  };
}

export function presentGroup({ queue, fingerprint, error, count, lastAt }: DeadGroup, masks: Masks): Json {
  const shown = maskBeginning(masks, error, groupErrorLength);
  return { queue, fingerprint, error: shown, count, last_at: formatInstant(lastAt) };
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

export function presentQueue(queue: ListedQueue, masks: Masks): Json {
  const { settings, counts, unresolved } = queue;
  const estimated = statuses.filter((status) => counts[status].isEstimate);
  return {
    queue: queue.name,
    configured: queue.isConfigured,
    has_target: queue.hasTarget,
    ...presentPause(queue.pause, masks),
    target_down: presentTargetDown(queue.targetDown, masks),
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

function presentTargetDown(down: TargetDown | null, masks: Masks): Json | null {
  if (down === null) return null;
  return {
    since: formatInstant(down.since),
    reason: masks.text(down.reason),
    next_probe_at: formatInstant(down.nextProbeAt),
  };
}

const total = ({ total: count }: Count): number => count;
