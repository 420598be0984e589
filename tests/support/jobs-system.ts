import assert from 'node:assert/strict';
import type { ClaimedJob } from '../../src/jobs/claim-jobs.ts';
import type { Settlement } from '../../src/jobs/settle-jobs.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from './eventually.ts';
import { createTestJobStore } from './job-store.ts';
import { startTestSystem, type TestSystem, type TestSystemOptions } from './start-system.ts';

/** The whole system with a few queues. Queues without a target have no worker, unless the test starts one. */
export type JobsSystem = Readonly<{
  system: TestSystem;
  /** Posts a job to the queue `mail`, or to another; returns its id. */
  job(more?: Fields): Promise<string>;
  /** Claims this job and settles it, as a worker in another process would. */
  attempt(jobId: string, end: AttemptEnding): Promise<void>;
  /** Adds a dead letter with this error; returns its id. */
  deadJob(error?: string, more?: Fields): Promise<string>;
  /** Resolves with the row when the job has this status. */
  becomes(jobId: string, status: string, withinMs?: number): Promise<StoredJob>;
  /** The same for many jobs, in their order. */
  become(jobIds: readonly string[], status: string, withinMs?: number): Promise<readonly StoredJob[]>;
  drop(): Promise<void>;
}>;

type Fields = Readonly<Record<string, unknown>>;

/** A settlement without its job. */
export type AttemptEnding = Settlement extends infer One
  ? One extends Settlement
    ? Omit<One, 'job' | 'ran'>
    : never
  : never;

export type StoredJob = Readonly<{
  job_id: string;
  queue: string;
  payload: unknown;
  status: string;
  retry_count: number;
  max_retries: number;
  deferrals: number;
  error_message: string | null;
  result: unknown;
  dedupe_key: string | null;
  priority: number;
  run_at: Date;
  sort_at: Date;
  created_at: Date;
  started_at: Date | null;
  completed_at: Date | null;
  resolution: string | null;
  progress: unknown;
  trace: string | null;
  lease_owner: string | null;
  lease_until: Date | null;
  lease_epoch: bigint;
}>;

export type JobsSystemOptions = TestSystemOptions &
  Readonly<{
    /** Further queues, and other settings of existing ones; `mail` has a backoff of milliseconds. */
    queues?: Readonly<Record<string, Fields>>;
    cron?: Readonly<Record<string, Fields>>;
  }>;

/** A backoff of milliseconds, so that tests do not wait for retries. */
export const fastQueue = { backoff: { initial_ms: 20, max_ms: 80 } } as const;

/** A failure that is not retryable. */
export const notRetryable = (error: string): AttemptEnding => ({
  outcome: 'failed',
  error,
  isRetryable: false,
  retryAfterMs: null,
});

export const root = '/api/v1/jobs';

let made = 0;

export async function startJobsSystem(options: JobsSystemOptions = {}): Promise<JobsSystem> {
  const { queues = {}, cron = {} } = options;
  const system = await startTestSystem({
    ...options,
    env: {
      JOBS_QUEUES: JSON.stringify({ mail: fastQueue, ...queues }),
      ...(Object.keys(cron).length === 0 ? {} : { JOBS_CRON: JSON.stringify(cron) }),
      ...options.env,
    },
  });
  const { db } = system;
  const job: JobsSystem['job'] = async (more = {}) => {
    made += 1;
    const answer = await system.api.post<{ job_id: string }>(root, {
      queue: 'mail',
      payload: { n: made },
      ...more,
    });
    assert.equal(answer.status, 202, answer.text);
    return answer.body.job_id;
  };
  const attempt = (jobId: string, end: AttemptEnding): Promise<void> => attemptJob(db, jobId, end);
  const become: JobsSystem['become'] = (jobIds, status, withinMs = 60_000) =>
    eventually(
      async () => {
        const rows = await storedJobs(db, jobIds);
        for (const row of rows) assert.equal(row.status, status, nameOf(row));
        return rows;
      },
      { withinMs },
    );
  return {
    system,
    job,
    attempt,
    async deadJob(error = 'it broke', more = {}) {
      const jobId = await job(more);
      await attempt(jobId, notRetryable(error));
      return jobId;
    },
    becomes: async (jobId, status, withinMs) => (await become([jobId], status, withinMs))[0] ?? assert.fail(),
    become,
    drop: () => system.drop(),
  };
}

/** Moves the job to the front of its queue, and claims it. */
export async function claimJob(db: Database, jobId: string): Promise<ClaimedJob> {
  const [row] = await db.query<{ queue: string }>(sql`
    UPDATE jobs.job_queue SET run_at = now(), sort_at = now() - interval '10 years'
    WHERE job_id = ${jobId} AND status IN ('pending', 'failed')
    RETURNING queue`);
  assert.ok(row, `job ${jobId} does not wait`);
  const { jobs } = await createTestJobStore(db).claim({ queue: row.queue });
  const [claimed] = jobs;
  assert.equal(claimed?.jobId, jobId);
  return claimed;
}

async function attemptJob(db: Database, jobId: string, end: AttemptEnding): Promise<void> {
  const claimed = await claimJob(db, jobId);
  const [settled] = await createTestJobStore(db).settle(claimed.queue, [{ job: claimed, ran: null, ...end }]);
  assert.notEqual(settled?.status, null, `the settle of job ${jobId} was stale`);
}

export async function storedJob(db: Database, jobId: string): Promise<StoredJob> {
  return (await storedJobs(db, [jobId]))[0] ?? assert.fail();
}

export async function storedJobs(db: Database, jobIds: readonly string[]): Promise<readonly StoredJob[]> {
  const rows = await db.query<StoredJob>(sql`
    SELECT job_id, queue, payload, status, retry_count, max_retries, deferrals, error_message, result, dedupe_key,
           priority, run_at, sort_at, created_at, started_at, completed_at, resolution, progress, trace, lease_owner,
           lease_until, lease_epoch
    FROM jobs.job_queue WHERE job_id = ANY(${jobIds}::uuid[])`);
  const byId = new Map(rows.map((row) => [row.job_id, row]));
  return jobIds.map((jobId) => byId.get(jobId) ?? assert.fail(`there is no job ${jobId}`));
}

function nameOf({ job_id: id, queue, status, error_message: error }: StoredJob): string {
  return `job ${id} of ${queue}, ${status} ${error ?? ''}`;
}
