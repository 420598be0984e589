import { enqueue, enqueueMany } from './enqueue.ts';
import { createWorkers, type JobWorker, type WorkersOptions, type WorkOptions } from './jobs-worker.ts';

/** Jobs in the database of the service: added in its transactions, handled in its processes. */
export const jobs = { enqueue, enqueueMany, work, workers: createWorkers } as const;

/**
 * Handles the jobs of one queue until it is stopped. A process that works on several queues makes `jobs.workers`
 * once, and lets each queue be worked on by its `work`.
 */
async function work<Input, Output>(options: WorkersOptions & WorkOptions<Input, Output>): Promise<JobWorker> {
  const workers = createWorkers(options);
  const worker = await workers.work(options);
  return { ...worker, stop: (how) => workers.stop(how) };
}
