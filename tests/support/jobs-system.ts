import assert from 'node:assert/strict';
import { createPostgresJobStore } from '../../src/jobs/infra/postgres-job-store.ts';
import { createPostgresQueueBook } from '../../src/jobs/infra/postgres-queue-book.ts';
import type { ClaimedJob, JobEnd } from '../../src/jobs/usecase/ports.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from './eventually.ts';
import { startTestSystem, type TestSystem, type TestSystemOptions } from './start-system.ts';
import { createTestWorker } from './worker.ts';

/** The whole system with a few queues. Nobody works on a queue without a target, unless the test does. */
export type JobsSystem = Readonly<{
  system: TestSystem;
  /** Posts a job to the queue `mail`, or to another; its id. */
  job(more?: Fields): Promise<string>;
  /** Claims this very job and ends the attempt so, as a worker in another process would. */
  attempt(jobId: string, end: AttemptEnding): Promise<void>;
  /** A job that has just become a dead letter with this error; its id. */
  deadJob(error?: string, more?: Fields): Promise<string>;
  /** Resolves with the row when the job has this status. */
  becomes(jobId: string, status: string, withinMs?: number): Promise<StoredJob>;
  /** The same for many, in their order. */
  become(jobIds: readonly string[], status: string, withinMs?: number): Promise<readonly StoredJob[]>;
  drop(): Promise<void>;
}>;

type Fields = Readonly<Record<string, unknown>>;

/** How an attempt ends, without the job that it is of. */
export type AttemptEnding = JobEnd extends infer End
  ? End extends JobEnd
    ? Omit<End, 'job' | 'startedAt'>
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
    /** Further queues, and other settings of those that are there; `mail` has a backoff of milliseconds. */
    queues?: Readonly<Record<string, Fields>>;
    cron?: Readonly<Record<string, Fields>>;
  }>;

/** Waits of milliseconds, so that a test sees a whole life of a job. */
export const fastQueue = { backoff: { initial_ms: 20, max_ms: 80 } } as const;

/** Failed for good, whatever its count. */
export const notRetryable = (error: string): AttemptEnding => ({
  end: 'failed',
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
  const become: JobsSystem['become'] = (jobIds, status, withinMs = 20_000) =>
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

/** Puts the job in front of its queue, so that the next claim of one is a claim of it. */
export async function claimJob(db: Database, jobId: string): Promise<ClaimedJob> {
  const [row] = await db.query<{ queue: string }>(sql`
    UPDATE jobs.job_queue SET run_at = now(), sort_at = now() - interval '10 years'
    WHERE job_id = ${jobId} AND status IN ('pending', 'failed')
    RETURNING queue`);
  assert.ok(row, `job ${jobId} does not wait`);
  const { jobs } = await testStore(db).claim({
    queue: row.queue,
    limit: 1,
    leaseMs: 60_000,
    lane: 'together',
    after: null,
  });
  const [claimed] = jobs;
  assert.equal(claimed?.jobId, jobId);
  return claimed;
}

async function attemptJob(db: Database, jobId: string, end: AttemptEnding): Promise<void> {
  const claimed = await claimJob(db, jobId);
  const [settled] = await testStore(db).settle(claimed.queue, [{ job: claimed, startedAt: null, ...end }]);
  assert.notEqual(settled?.status, null, `job ${jobId} was somebody else's by then`);
}

function testStore(db: Database): ReturnType<typeof createPostgresJobStore> {
  return createPostgresJobStore(db, createTestWorker(db), {
    book: createPostgresQueueBook(db),
    onSettleRetry: () => {},
  });
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
