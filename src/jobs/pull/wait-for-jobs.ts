import { sleep } from '../../kernel/clock.ts';
import type { Wake } from '../../platform/work/wake.ts';
import { jobsChannel } from '../channels.ts';

const maxQueues = 1000;

/**
 * Waits for jobs of queues whose names clients choose. Each name that is listened for takes memory and a row in the
 * database, so beyond a limit of names it only sleeps.
 */
export function createWaitForJobs(
  wake: Pick<Wake, 'wait'>,
  limit = maxQueues,
): (queue: string, ms: number, signal: AbortSignal) => Promise<unknown> {
  const known = new Set<string>();
  return (queue, ms, signal) => {
    if (!known.has(queue) && known.size >= limit) return sleep(ms, signal);
    known.add(queue);
    return wake.wait(jobsChannel(queue), ms, signal);
  };
}
