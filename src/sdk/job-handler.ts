import type { JobContext } from '../jobs/domain/job-context.ts';

export type Job<Payload = unknown> = Readonly<{
  jobId: string;
  queue: string;
  payload: Payload;
  /** How often it has failed so far. */
  retryCount: number;
  maxRetries: number;
  /** How often it was deferred so far. */
  deferrals: number;
  traceparent: string | null;
}>;

/** The return value is stored as the result; a thrown error is a failure. */
export type JobHandler<Payload> = (job: Job<Payload>, context: JobContext) => unknown;
