/**
 * Runs work in parallel, or alone. An item that lost an attempt to an expired lease and has one attempt left runs
 * alone: if it kills the process again, no other item loses an attempt. Work that waits to run alone goes before shared
 * work that comes later, so it cannot starve.
 */
export type SoloGate = Readonly<{
  together<T>(work: () => Promise<T>): Promise<T>;
  alone<T>(work: () => Promise<T>): Promise<T>;
  /** Some work waits to run alone: shared work that could continue without end stops. */
  isWanted(): boolean;
}>;

export function createSoloGate(): SoloGate {
  let running = 0;
  let solo = false;
  const waiting: { alone: boolean; go: () => void }[] = [];

  const admit = (): void => {
    for (let next = waiting[0]; next !== undefined && !solo; next = waiting[0]) {
      if (next.alone && running > 0) return;
      waiting.shift();
      running += 1;
      solo = next.alone;
      next.go();
    }
  };

  const enter = async (alone: boolean): Promise<void> => {
    await new Promise<void>((resolve) => {
      waiting.push({ alone, go: resolve });
      admit();
    });
  };

  const run = async <T>(alone: boolean, work: () => Promise<T>): Promise<T> => {
    await enter(alone);
    try {
      return await work();
    } finally {
      running -= 1;
      if (alone) solo = false;
      admit();
    }
  };

  return {
    together: (work) => run(false, work),
    alone: (work) => run(true, work),
    isWanted: () => waiting.some(({ alone }) => alone),
  };
}
