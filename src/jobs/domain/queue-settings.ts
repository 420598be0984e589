import type { Backoff } from '../../kernel/backoff.ts';

/** What holds for the jobs of a queue, in every process that works on it. */
export type QueueSettings = Readonly<{
  /** How many failures make a job dead, where the job itself does not say. */
  maxRetries: number;
  timeoutMs: number;
  backoff: Backoff;
  /** How often a job may be put off before each further time is a failure. */
  maxDeferrals: number;
  /** Completed jobs stay as rows; otherwise they go when they are settled. */
  keepCompleted: boolean;
  /** Over all processes together. */
  maxRunning: number | null;
  rateLimit: RateLimit | null;
}>;

/** So many jobs in each window of time. */
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

const queueName = /^[a-z][a-z\d_.-]{0,99}$/;

/** Also part of addresses, metrics and channels, so it is kept plain. */
export function isQueueName(text: string): boolean {
  return queueName.test(text);
}
