import type { Clock } from '../../kernel/clock.ts';
import { storableJson } from '../../kernel/storable-json.ts';
import type { ClaimedJob } from './ports.ts';

/** What a handler gets beside its job. */
export type JobContext = Readonly<{
  /** Aborts when the job is taken away or its time is up: what the handler does after that counts for nothing. */
  signal: AbortSignal;
  /** How far it is, as JSON, for people to see; written down now and then. */
  progress(value: unknown): void;
  /** Makes sure that the job is still ours, and prolongs its lease; throws where it is not. */
  heartbeat(): Promise<void>;
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
  /** Since when, on the monotonic clock; null while its end counts. */
  givenUpAtMs(): number | null;
  /** It was told to stop and did not: its slot is given to others. */
  becomeZombie(): void;
  isZombie(): boolean;
  /** What was said about its progress since the last time, as JSON text; null where nothing was. */
  takeProgress(): string | null;
}>;

const longestProgress = 65_536;

export function createJobRun(
  claimed: ClaimedJob,
  { clock, renewNow }: Readonly<{ clock: Clock; renewNow: (run: JobRun) => Promise<void> }>,
): JobRun {
  let job = claimed;
  let controller: AbortController | null = null;
  let givenUp: Readonly<{ why: Error; atMs: number }> | null = null;
  let isZombie = false;
  let progress: string | null = null;
  // Most handlers never look at it, and it is dear: made when it is asked for.
  const signalOf = (): AbortSignal => {
    controller ??= new AbortController();
    if (givenUp !== null && !controller.signal.aborted) controller.abort(givenUp.why);
    return controller.signal;
  };
  const run: JobRun = {
    get job() {
      return job;
    },
    startedAt: clock.now(),
    startedAtMs: clock.monotonicMs(),
    context: {
      get signal() {
        return signalOf();
      },
      progress: (value) => void (progress = progressText(value)),
      async heartbeat() {
        if (givenUp === null) await renewNow(run);
        if (givenUp !== null) throw givenUp.why;
      },
    },
    renew: (endsAtMs) => void (job = { ...job, lease: { ...job.lease, endsAtMs } }),
    giveUp(why) {
      givenUp ??= { why, atMs: clock.monotonicMs() };
      controller?.abort(why);
    },
    givenUpAtMs: () => givenUp?.atMs ?? null,
    becomeZombie: () => void (isZombie = true),
    isZombie: () => isZombie,
    takeProgress() {
      const said = progress;
      progress = null;
      return said;
    },
  };
  return run;
}

function progressText(value: unknown): string {
  const text = JSON.stringify(value);
  if (text === undefined) throw new TypeError('progress is a value that JSON has');
  if (text.length > longestProgress)
    throw new RangeError(`progress is JSON text of up to ${longestProgress} characters`);
  return storableJson(text);
}
