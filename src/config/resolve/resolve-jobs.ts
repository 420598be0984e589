import { nearest } from '../../kernel/nearest.ts';
import type { Check } from '../check.ts';
import { anyOf } from '../formats/value.ts';
import type { CronValues, QueueValues, RateLimit } from '../sections/jobs.ts';
import { childPath } from '../key-path.ts';
import { warnUnusedTls } from './warn-unused-tls.ts';
import type { Settings } from '../schema.ts';

/** Where the jobs of a queue are pushed to. */
export type TargetConfig = Omit<NonNullable<QueueValues['target']>, 'type'>;

export type QueueConfig = Omit<QueueValues, 'globalConcurrency' | 'rateLimit' | 'target'> &
  Readonly<{
    name: string;
    maxRunning: number | null;
    rateLimit: RateLimit | null;
    retentionMs: number;
    deadRetentionMs: number;
    target: TargetConfig | null;
  }>;

export type CronConfig = Readonly<{ name: string; maxRetries: number | null }> &
  Omit<CronValues, 'maxRetries'>;

export type JobsConfig = Readonly<{
  /** Of queues that are not configured. */
  retentionMs: number;
  deadRetentionMs: number;
  queues: readonly QueueConfig[];
  cron: readonly CronConfig[];
}>;

export function resolveJobs(settings: Settings['jobs'], check: Check): JobsConfig {
  const { retentionMs, deadRetentionMs } = settings;
  return {
    retentionMs,
    deadRetentionMs,
    queues: Object.entries(settings.queues).map(([name, values]) =>
      resolveQueue({ name, values, settings, check }),
    ),
    cron: Object.entries(settings.cron).map(([name, values]) => {
      warnOfStranger(`${childPath('jobs.cron', name)}.queue`, values.queue, { settings, check });
      return { ...values, name, maxRetries: values.maxRetries ?? null };
    }),
  };
}

/** A queue needs no configuration, but one that is almost called like another is probably that one. */
function warnOfStranger(
  path: string,
  queue: string,
  { settings, check }: Pick<Case, 'settings' | 'check'>,
): void {
  const known = Object.keys(settings.queues);
  const meant = known.includes(queue) ? undefined : anyOf(nearest(queue, known));
  if (meant !== undefined) check.warn(`${path} is not one of jobs.queues; did you mean ${meant}?`);
}

type Case = Readonly<{ name: string; values: QueueValues; settings: Settings['jobs']; check: Check }>;

function resolveQueue({ name, values, settings, check }: Case): QueueConfig {
  const { globalConcurrency, rateLimit, target, backoff, ...rest } = values;
  const path = childPath('jobs.queues', name);
  if (backoff.maxMs < backoff.initialMs)
    check.report(
      [`${path}.backoff.max_ms`, `${path}.backoff.initial_ms`],
      `must not be less than ${path}.backoff.initial_ms`,
    );
  return {
    ...rest,
    name,
    backoff,
    maxRunning: globalConcurrency ?? null,
    rateLimit: rateLimit ?? null,
    retentionMs: values.retentionMs ?? settings.retentionMs,
    deadRetentionMs: values.deadRetentionMs ?? settings.deadRetentionMs,
    target: target === undefined ? null : resolveTarget(`${path}.target`, target, check),
  };
}

function resolveTarget(
  path: string,
  { url, headers, tls }: NonNullable<QueueValues['target']>,
  check: Check,
): TargetConfig {
  warnUnusedTls(path, { urls: [url], tls }, check);
  return { url, headers, tls };
}
