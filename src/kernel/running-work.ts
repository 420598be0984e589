import { onceAborted } from './clock.ts';
import type { Service } from './service.ts';

/** Knows what is under way, and waits for it at the stop, until the deadline. */
export type RunningWork = Readonly<{
  watch<T>(work: Promise<T>): Promise<T>;
  service: Service;
}>;

export function createRunningWork(name: string): RunningWork {
  const running = new Set<Promise<unknown>>();
  return {
    async watch(work) {
      running.add(work);
      try {
        return await work;
      } finally {
        running.delete(work);
      }
    },
    service: {
      name,
      async start() {},
      async stop(deadline) {
        while (running.size > 0 && !deadline.aborted)
          await Promise.race([Promise.allSettled(running), onceAborted(deadline)]);
      },
    },
  };
}
