import type { EnqueuedJob, JobStore, NewJob } from './ports.ts';

export type EnqueueDeps = Readonly<{
  store: Pick<JobStore, 'enqueue'>;
  /** Not called for a duplicate. */
  onEnqueued: (queue: string) => void;
}>;

/** With a dedupe key that a job of the queue has that is not over, that job is the answer, and none is added. */
export async function enqueueJob({ store, onEnqueued }: EnqueueDeps, job: NewJob): Promise<EnqueuedJob> {
  const enqueued = await store.enqueue(job);
  if (!enqueued.isDuplicate) onEnqueued(job.queue);
  return enqueued;
}
