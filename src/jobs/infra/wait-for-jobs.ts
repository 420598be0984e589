import { sleep } from '../../kernel/clock.ts';
import type { Wake } from '../../platform/postgres/wake.ts';
import { jobsChannel } from './jobs-channel.ts';

const maxQueues = 1000;

/**
 * Waits for work on queues whose names come from outside. Who listens leaves a trace in memory and in the database,
 * so beyond a number of names nobody listens any more, and the waiting one looks again when its time is over.
 */
export function createWaitForJobs(
  wake: Pick<Wake, 'wait'>,
  limit = maxQueues,
): (queue: string, ms: number, signal: AbortSignal) => Promise<void> {
  const known = new Set<string>();
  return (queue, ms, signal) => {
    if (!known.has(queue) && known.size >= limit) return sleep(ms, signal);
    known.add(queue);
    return wake.wait(jobsChannel(queue), ms, signal);
  };
}
