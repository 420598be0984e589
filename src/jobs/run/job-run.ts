import type { Clock } from '../../kernel/clock.ts';
import { storableJson } from '../../kernel/storable-json.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { unnestRows } from '../../platform/postgres/unnest-rows.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { ClaimedJob } from '../claim-jobs.ts';
import type { JobContext } from '../domain/job-context.ts';
import type { Ran } from '../settle-jobs.ts';

export type RunDeps = Readonly<{ clock: Clock; renewNow: (run: JobRun) => Promise<void> }>;

type Abandoned = Readonly<{ why: Error; atMs: number }>;

const maxProgressLength = 65_536;

/** One running handler. A class, because there are tens of thousands of them a second. */
export class JobRun {
  /** A plain object, so that handlers can destructure and spread it. */
  readonly context: JobContext;
  readonly #deps: RunDeps;
  #job: ClaimedJob;
  #startedAtMs: number | null = null;
  #controller: AbortController | null = null;
  #abandoned: Abandoned | null = null;
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
      progress: (value) => void (this.#progress = progressText(value)),
      heartbeat: () => this.heartbeat(),
    };
  }

  /** The handler is called now: the timeout starts. */
  start(): void {
    this.#startedAtMs = this.#deps.clock.monotonicMs();
  }

  /** Null before the handler was started. */
  get ran(): Ran | null {
    if (this.#startedAtMs === null) return null;
    return { waitedMs: Math.max(0, this.#startedAtMs - this.#job.claimedAtMs), ms: this.ranMs };
  }

  /** Zero before the handler was started. */
  get ranMs(): number {
    return this.#startedAtMs === null ? 0 : this.#deps.clock.monotonicMs() - this.#startedAtMs;
  }

  get job(): ClaimedJob {
    return this.#job;
  }

  /** Created when it is read: most handlers never use it, and it is expensive. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#abandoned !== null && !this.#controller.signal.aborted)
      this.#controller.abort(this.#abandoned.why);
    return this.#controller.signal;
  }

  async heartbeat(): Promise<void> {
    if (this.#abandoned === null) await this.#deps.renewNow(this);
    if (this.#abandoned !== null) throw this.#abandoned.why;
  }

  renew(endsAtMs: number): void {
    this.#job = { ...this.#job, lease: { ...this.#job.lease, endsAtMs } };
  }

  /** Tells the handler to stop; its outcome is ignored from now on. */
  abandon(why: Error): void {
    this.#abandoned ??= { why, atMs: this.#deps.clock.monotonicMs() };
    this.#controller?.abort(why);
  }

  /** On the monotonic clock; null if it was not abandoned. */
  get abandonedAtMs(): number | null {
    return this.#abandoned === null ? null : this.#abandoned.atMs;
  }

  /** It was told to stop and did not: its slot is given to another job. */
  becomeZombie(): void {
    this.#isZombie = true;
  }

  get isZombie(): boolean {
    return this.#isZombie;
  }

  /** The progress since the last call, as JSON text; null if there is none. */
  takeProgress(): string | null {
    const progress = this.#progress;
    this.#progress = null;
    return progress;
  }
}

function progressText(value: unknown): string {
  const text = JSON.stringify(value);
  if (text === undefined) throw new TypeError('progress must be a JSON value');
  if (text.length > maxProgressLength)
    throw new RangeError(`progress must be at most ${maxProgressLength} characters of JSON`);
  return storableJson(text);
}

/** Stores new progress of jobs that are still leased. */
export async function saveProgress(db: Queryable, runs: readonly JobRun[]): Promise<void> {
  const reports = runs.flatMap((run) => {
    const progress = run.takeProgress();
    return progress === null ? [] : [{ job: run.job, progress }];
  });
  if (reports.length === 0) return;
  await db.query(sql`
    UPDATE jobs.job_queue t SET progress = reported.progress
    FROM ${unnestRows(sql`reported`, reports, [
      [sql`key`, sql`uuid[]`, ({ job }) => job.jobId],
      [sql`epoch`, sql`bigint[]`, ({ job }) => job.lease.epoch],
      [sql`progress`, sql`jsonb[]`, ({ progress }) => progress],
    ])}
    WHERE t.job_id = reported.key AND t.lease_epoch = reported.epoch AND t.status = 'running'`);
}
