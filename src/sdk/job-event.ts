/** Events of the workers, for logs and metrics. */
export type JobEvent =
  | Readonly<{
      type: 'finished';
      queue: string;
      jobId: string;
      outcome: JobOutcome;
      /** How long the handler ran; null if it was not started. */
      seconds: number | null;
      error: string | null;
    }>
  /** A job of a lost worker, of any process and queue, was released. */
  | Readonly<{
      type: 'reaped';
      queue: string;
      jobId: string;
      outcome: Extract<JobOutcome, 'failed' | 'dead_letter'>;
      error: string;
    }>
  /** Something failed and will be retried. */
  | Readonly<{ type: 'trouble'; what: string; error: unknown }>;

/**
 * `failed`: it will be retried. `dead_letter`: it will not. `deferred`: snoozed or busy. `stale`: its lease was lost, so
 * that its outcome is ignored.
 */
export type JobOutcome = 'completed' | 'failed' | 'dead_letter' | 'deferred' | 'stale';
