import { onceAborted } from '../../kernel/clock.ts';
import type { Service } from '../../kernel/service.ts';

/** Tracks promises of running work, so that a stop waits for them until its deadline. */
export type RunningWork = Readonly<{
  track<T>(work: Promise<T>): Promise<T>;
  service: Service;
}>;

export function createRunningWork(name: string): RunningWork {
  const running = new Set<Promise<unknown>>();
  return {
    async track(work) {
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
