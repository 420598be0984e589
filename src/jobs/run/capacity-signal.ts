/** Wakes a worker's claim loop when it has room for more jobs, or when something else has changed. */
export type CapacitySignal = Readonly<{
  /** Resolves when at most `maxJobs` are left, on `wake`, or after the time. Only one caller waits at a time. */
  wait(maxJobs: number, ms: number): Promise<void>;
  /** Reports how many jobs are left. */
  jobsLeft(count: number): void;
  wake(): void;
}>;

export function createCapacitySignal(): CapacitySignal {
  let wake = (): void => {};
  let wakeAtJobs = -1;
  return {
    wait: (maxJobs, ms) =>
      new Promise((resolve) => {
        const done = (): void => {
          clearTimeout(timer);
          wake = () => {};
          wakeAtJobs = -1;
          resolve();
        };
        const timer = setTimeout(done, ms);
        wake = done;
        wakeAtJobs = maxJobs;
      }),
    jobsLeft(count) {
      if (count <= wakeAtJobs) wake();
    },
    wake: () => wake(),
  };
}
