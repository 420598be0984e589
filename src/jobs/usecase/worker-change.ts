/** Lets the loop of a worker sleep until something is different. One waits at a time. */
export type WorkerChange = Readonly<{
  /** Resolves when so few jobs are left, when something else has happened, or after the time. */
  wait(few: number, ms: number): Promise<void>;
  /** So many jobs are left. */
  left(count: number): void;
  /** Something else has happened. */
  happened(): void;
}>;

export function createWorkerChange(): WorkerChange {
  let wake = (): void => {};
  let wakeAt = -1;
  return {
    wait: (few, ms) =>
      new Promise((resolve) => {
        const done = (): void => {
          clearTimeout(timer);
          wake = () => {};
          wakeAt = -1;
          resolve();
        };
        const timer = setTimeout(done, ms);
        wake = done;
        wakeAt = few;
      }),
    left(count) {
      if (count <= wakeAt) wake();
    },
    happened: () => wake(),
  };
}
