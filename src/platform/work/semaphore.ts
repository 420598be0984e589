/** Bounds how many calls run in parallel; the others wait in the order of their arrival. */
export type Semaphore = Readonly<{ run<T>(work: () => Promise<T>): Promise<T> }>;

export function createSemaphore(permits: number): Semaphore {
  let free = permits;
  const waiting: (() => void)[] = [];
  return {
    async run(work) {
      if (free > 0) free -= 1;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      try {
        return await work();
      } finally {
        const next = waiting.shift();
        if (next === undefined) free += 1;
        else next();
      }
    },
  };
}
