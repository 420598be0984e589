import { jobNotFound } from './finish-pulled-job.ts';
import type { FailedAttempt, Job, JobReader, PersonsAction } from './reading-ports.ts';

/** A job with its story. */
export type ToldJob = Readonly<{
  job: Job;
  attempts: readonly FailedAttempt[];
  actions: readonly PersonsAction[];
}>;

export async function getJob(
  reader: Pick<JobReader, 'find' | 'attempts' | 'actions'>,
  jobId: string,
): Promise<ToldJob> {
  const job = await reader.find(jobId);
  if (job === null) throw jobNotFound(jobId);
  const [attempts, actions] = await Promise.all([reader.attempts(jobId), reader.actions(jobId)]);
  return { job, attempts, actions };
}
