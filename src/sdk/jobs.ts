import { enqueue, enqueueMany } from './enqueue.ts';
import { createWorkers, type JobWorker, type WorkersOptions, type WorkOptions } from './jobs-worker.ts';

/** Jobs in the service's own database: added in its transactions, handled in its processes. */
export const jobs = { enqueue, enqueueMany, work, workers: createWorkers } as const;

/**
 * Handles the jobs of one queue until it is stopped. A process with several queues calls `jobs.workers` once, and then
 * `work` for each queue.
 */
async function work<Input, Output>(options: WorkersOptions & WorkOptions<Input, Output>): Promise<JobWorker> {
  const workers = createWorkers(options);
  const worker = await workers.work(options);
  return { ...worker, stop: (how) => workers.stop(how) };
}
