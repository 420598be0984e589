import { within, type Deadline } from './deadline.ts';

/** Limits concurrent work; callers wait in the order of arrival, each until its deadline. */
export type Semaphore = Readonly<{ use<T>(deadline: Deadline, work: () => Promise<T>): Promise<T> }>;

export function createSemaphore(count: number): Semaphore {
  let free = count;
  const waiting: (() => void)[] = [];

  const release = (): void => {
    const next = waiting.shift();
    if (next) next();
    else free++;
  };

  const acquire = async (deadline: Deadline): Promise<void> => {
    if (free > 0) {
      free--;
      return;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.push(resolve);
    try {
      await within(deadline, 'waiting to send', promise);
    } catch (error) {
      // If it is not in the queue any more it has acquired at the same moment: pass it on.
      const at = waiting.indexOf(resolve);
      if (at >= 0) waiting.splice(at, 1);
      else release();
      throw error;
    }
  };

  return {
    use: async (deadline, work) => {
      await acquire(deadline);
      try {
        return await work();
      } finally {
        release();
      }
    },
  };
}
