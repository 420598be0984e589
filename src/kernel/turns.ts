/** So many may work at once; the others wait in the order of their arrival. */
export type Turns = Readonly<{ take<T>(work: () => Promise<T>): Promise<T> }>;

export function createTurns(count: number): Turns {
  let free = count;
  const waiting: (() => void)[] = [];
  return {
    async take(work) {
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
