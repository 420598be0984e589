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

export type RunDeps = Readonly<{ clock: Clock; renewNow: (run: JobRun) => Promise<void> }>;

type GivenUp = Readonly<{ why: Error; atMs: number }>;

const longestProgress = 65_536;

/** One handler at work. A class, because there are tens of thousands of them a second. */
export class JobRun {
  /** What the handler gets, in a form that it may take apart or spread. */
  readonly context: JobContext;
  readonly #deps: RunDeps;
  #job: ClaimedJob;
  #startedAt: Date | null = null;
  #startedAtMs: number | null = null;
  #controller: AbortController | null = null;
  #givenUp: GivenUp | null = null;
  #isZombie = false;
  #progress: string | null = null;

  constructor(job: ClaimedJob, deps: RunDeps) {
    this.#deps = deps;
    this.#job = job;
    const signalOf = (): AbortSignal => this.signal;
    this.context = {
      get signal() {
        return signalOf();
      },
      progress: (value) => this.note(value),
      heartbeat: () => this.heartbeat(),
    };
  }

  /** It is handed to the handler now: from here on its time runs. */
  begin(): void {
    this.#startedAt = this.#deps.clock.now();
    this.#startedAtMs = this.#deps.clock.monotonicMs();
  }

  /** Null before that. */
  get startedAt(): Date | null {
    return this.#startedAt;
  }

  /** For how long the handler has had it; zero before that. */
  get ranMs(): number {
    return this.#startedAtMs === null ? 0 : this.#deps.clock.monotonicMs() - this.#startedAtMs;
  }

  get job(): ClaimedJob {
    return this.#job;
  }

  /** Most handlers never look at it, and it is dear: made when it is asked for. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#givenUp !== null && !this.#controller.signal.aborted) this.#controller.abort(this.#givenUp.why);
    return this.#controller.signal;
  }

  note(progress: unknown): void {
    this.#progress = progressText(progress);
  }

  async heartbeat(): Promise<void> {
    if (this.#givenUp === null) await this.#deps.renewNow(this);
    if (this.#givenUp !== null) throw this.#givenUp.why;
  }

  renew(endsAtMs: number): void {
    this.#job = { ...this.#job, lease: { ...this.#job.lease, endsAtMs } };
  }

  /** Its end no longer counts, and the handler is told so. */
  giveUp(why: Error): void {
    this.#givenUp ??= { why, atMs: this.#deps.clock.monotonicMs() };
    this.#controller?.abort(why);
  }

  /** Since when, on the monotonic clock; null while its end counts. */
  givenUpAtMs(): number | null {
    return this.#givenUp === null ? null : this.#givenUp.atMs;
  }

  /** It was told to stop and did not: its slot is given to others. */
  becomeZombie(): void {
    this.#isZombie = true;
  }

  isZombie(): boolean {
    return this.#isZombie;
  }

  /** What was said about its progress since the last time, as JSON text; null where nothing was. */
  takeProgress(): string | null {
    const said = this.#progress;
    this.#progress = null;
    return said;
  }
}

function progressText(value: unknown): string {
  const text = JSON.stringify(value);
  if (text === undefined) throw new TypeError('progress is a value that JSON has');
  if (text.length > longestProgress)
    throw new RangeError(`progress is JSON text of up to ${longestProgress} characters`);
  return storableJson(text);
}
