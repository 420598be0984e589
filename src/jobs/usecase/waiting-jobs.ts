import type { ClaimedJob } from './ports.ts';

/** Claimed jobs that wait for a slot here, in their order. Taking the next one costs the same however many wait. */
export type WaitingJobs = Readonly<{
  count(): number;
  add(jobs: readonly ClaimedJob[]): void;
  take(): ClaimedJob | undefined;
  all(): readonly ClaimedJob[];
  /** Puts in place of each what `change` makes of it; null leaves it out. */
  update(change: (job: ClaimedJob) => ClaimedJob | null): void;
}>;

export function createWaitingJobs(): WaitingJobs {
  /** The next one is the last. */
  let reversed: ClaimedJob[] = [];
  return {
    count: () => reversed.length,
    add: (jobs) => void (reversed = [...jobs.toReversed(), ...reversed]),
    take: () => reversed.pop(),
    all: () => reversed.toReversed(),
    update: (change) => void (reversed = reversed.map(change).filter((job) => job !== null)),
  };
}
