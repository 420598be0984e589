import type { Clock } from '../../kernel/clock.ts';
import type { ClaimedJob } from './ports.ts';

/** What a handler gets beside its job. */
export type JobContext = Readonly<{
  /** Aborts when the job is taken away or its time is up: what the handler does after that counts for nothing. */
  signal: AbortSignal;
}>;

/** One handler at work. */
export type JobRun = Readonly<{
  job: ClaimedJob;
  startedAt: Date;
  /** On the monotonic clock. */
  startedAtMs: number;
  context: JobContext;
  renew(endsAtMs: number): void;
  /** Its end no longer counts, and the handler is told so. */
  giveUp(why: Error): void;
  isGivenUp(): boolean;
  /** It was told to stop and did not: its slot is given to others. */
  becomeZombie(): void;
  isZombie(): boolean;
}>;

export function createJobRun(claimed: ClaimedJob, clock: Clock): JobRun {
  let job = claimed;
  let controller: AbortController | null = null;
  let givenUp: Error | null = null;
  let isZombie = false;
  // Most handlers never look at it, and it is dear: made when it is asked for.
  const signalOf = (): AbortSignal => {
    controller ??= new AbortController();
    if (givenUp !== null && !controller.signal.aborted) controller.abort(givenUp);
    return controller.signal;
  };
  return {
    get job() {
      return job;
    },
    startedAt: clock.now(),
    startedAtMs: clock.monotonicMs(),
    context: {
      get signal() {
        return signalOf();
      },
    },
    renew: (endsAtMs) => void (job = { ...job, lease: { ...job.lease, endsAtMs } }),
    giveUp(why) {
      givenUp ??= why;
      controller?.abort(why);
    },
    isGivenUp: () => givenUp !== null,
    becomeZombie: () => void (isZombie = true),
    isZombie: () => isZombie,
  };
}
