import { within, type Deadline } from './deadline.ts';

/** So many may work at once; the others wait in the order of their arrival, each no longer than its deadline. */
export type Slots = Readonly<{ use<T>(deadline: Deadline, work: () => Promise<T>): Promise<T> }>;

export function createSlots(count: number): Slots {
  let free = count;
  const waiting: (() => void)[] = [];

  const leave = (): void => {
    const next = waiting.shift();
    if (next) next();
    else free++;
  };

  const enter = async (deadline: Deadline): Promise<void> => {
    if (free > 0) {
      free--;
      return;
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.push(resolve);
    try {
      await within(deadline, 'a turn to send', promise);
    } catch (error) {
      // Either still in the queue, or called in the very moment of giving up: then the slot goes to the next.
      const at = waiting.indexOf(resolve);
      if (at >= 0) waiting.splice(at, 1);
      else leave();
      throw error;
    }
  };

  return {
    use: async (deadline, work) => {
      await enter(deadline);
      try {
        return await work();
      } finally {
        leave();
      }
    },
  };
}
