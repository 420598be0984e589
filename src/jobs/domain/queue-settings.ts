import type { Backoff } from '../../kernel/backoff.ts';

/** The settings of a queue, the same in every process. */
export type QueueSettings = Readonly<{
  /** Failures before dead-lettering, unless the job has its own. */
  maxRetries: number;
  timeoutMs: number;
  backoff: Backoff;
  /** Deferrals of a job before each further one is a failure. */
  maxDeferrals: number;
  /** False: completed jobs are deleted when they are settled. */
  keepCompleted: boolean;
  /** Limit over all processes. */
  maxRunning: number | null;
  rateLimit: RateLimit | null;
}>;

/** At most `count` jobs start per window. */
export type RateLimit = Readonly<{ count: number; windowMs: number }>;

export const defaultSettings: QueueSettings = {
  maxRetries: 3,
  timeoutMs: 60_000,
  backoff: { initialMs: 2000, maxMs: 300_000, jitter: 0.1 },
  maxDeferrals: 100,
  keepCompleted: true,
  maxRunning: null,
  rateLimit: null,
};

export const QUEUE_NAME_PATTERN = '^[a-z][a-z\\d_.-]{0,99}$';

const queueName = new RegExp(QUEUE_NAME_PATTERN);

/** Strict, because names are used in URLs, metrics and channels. */
export function isQueueName(text: string): boolean {
  return queueName.test(text);
}
