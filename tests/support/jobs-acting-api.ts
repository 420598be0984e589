import assert from 'node:assert/strict';
import { addActionRoutes } from '../../src/jobs/adapter/action-routes.ts';
import { addWorkerRoutes } from '../../src/jobs/adapter/worker-routes.ts';
import { createPostgresJobActions } from '../../src/jobs/infra/postgres-job-actions.ts';
import { createPostgresJobStore } from '../../src/jobs/infra/postgres-job-store.ts';
import { createPostgresPullStore } from '../../src/jobs/infra/postgres-pull-store.ts';
import { createPostgresQueueBook } from '../../src/jobs/infra/postgres-queue-book.ts';
import { createWaitForJobs } from '../../src/jobs/infra/wait-for-jobs.ts';
import type { JobStore, NewJob } from '../../src/jobs/usecase/ports.ts';
import { createPuller } from '../../src/jobs/usecase/pull-jobs.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import { createTestServer } from '../../src/platform/http/test-server.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { isOutage } from '../../src/platform/postgres/sqlstate.ts';
import { createWake, type Wake } from '../../src/platform/postgres/wake.ts';
import type { Worker } from '../../src/platform/postgres/work.ts';
import { createApiClient, type Answer, type ApiClient } from './api-client.ts';
import { createTestDatabase } from './database.ts';
import { createTestWorker } from './worker.ts';

/**
 * The routes for workers in any language and for people's actions, over a real server and a real database. Nobody
 * else works on the jobs, and leases that are over stay so until a test reaps them.
 */
export type JobsActingApi = Readonly<{
  url: string;
  api: ApiClient;
  db: Database;
  wake: Wake;
  store: JobStore;
  /** Stale writes so far. */
  stale(): number;
  /** What was told about ends of attempts: queue, end, and the status then. */
  ends: readonly Readonly<[queue: string, end: string, status: string | null]>[];
  /** A queue of its own, with these settings instead of the defaults. */
  queue(settings?: QueueColumns): Promise<string>;
  enqueue(queue: string, more?: Partial<NewJob>): Promise<string>;
  /** A dead letter of the queue; its id. */
  dead(queue: string, more?: Partial<NewJob> & Readonly<{ error?: string }>): Promise<string>;
  claim(queue: string, more?: object): Promise<readonly ClaimedBody[]>;
  tell(jobId: string, what: string, body?: object): Promise<Answer<FinishedBody>>;
  act(jobId: string, action: string, body?: object, actor?: string): Promise<Answer<FinishedBody>>;
  row(jobId: string): Promise<JobRow>;
  drop(): Promise<void>;
}>;

export type QueueColumns = Readonly<{ timeoutMs?: number; maxDeferrals?: number; keepCompleted?: boolean }>;

export type ClaimedBody = Readonly<{
  job_id: string;
  queue: string;
  payload: unknown;
  retry_count: number;
  max_retries: number;
  epoch: number;
  lease_until: string;
}>;
export type FinishedBody = Readonly<{ job_id: string; status: string; lease_until?: string }>;

export type JobRow = Readonly<{
  status: string;
  resolution: string | null;
  retry_count: number;
  deferrals: number;
  error_message: string | null;
  result: unknown;
  progress: unknown;
  started_at: Date | null;
  completed_at: Date | null;
  lease_owner: string | null;
  lease_until: Date | null;
  lease_epoch: bigint;
}>;

export const root = '/api/v1/jobs';

let queues = 0;

export async function startJobsActingApi(): Promise<JobsActingApi> {
  const database = await createTestDatabase();
  const { db } = database;
  const worker = createTestWorker(db);
  const book = createPostgresQueueBook(db);
  const storeFor = (on: Database, as: Worker): JobStore =>
    createPostgresJobStore(on, as, { book, onSettleRetry: () => {} });
  const store = storeFor(db, worker);
  const wake = createWake(db, { listen: true, worker: 'test', onError: () => {} });
  await wake.start();
  const ends: [string, string, string | null][] = [];
  const { server, logged } = createTestServer({ isOutage });
  server.addRoutes('jobs', (app) => {
    addWorkerRoutes(app, {
      puller: createPuller({
        store: createPostgresPullStore({ db, worker, book, jobStoreFor: storeFor }),
        clock: systemClock,
        waitForWork: createWaitForJobs(wake),
      }),
      finish: {
        store: createPostgresPullStore({ db, worker, book, jobStoreFor: storeFor }),
        onEnd: (queue, { end }, status) => void ends.push([queue, end, status]),
        onStale: (count) => worker.onStale('jobs', count),
      },
    });
    addActionRoutes(app, {
      actions: createPostgresJobActions(db),
      clock: systemClock,
      onActed: () => {},
      onRequeued: () => {},
    });
  });
  await server.start();
  const url = `http://127.0.0.1:${server.address()?.port}`;
  const api = createApiClient(url);

  const enqueue: JobsActingApi['enqueue'] = async (queue, more = {}) => {
    const job: NewJob = {
      queue,
      payload: '{}',
      dedupeKey: null,
      priority: 0,
      runAt: null,
      maxRetries: 3,
      trace: null,
      ...more,
    };
    return (await store.enqueue(job)).jobId;
  };
  const row: JobsActingApi['row'] = async (jobId) => {
    const [found] = await db.query<JobRow>(sql`
      SELECT status, resolution, retry_count, deferrals, error_message, result, progress, started_at, completed_at,
             lease_owner, lease_until, lease_epoch
      FROM jobs.job_queue WHERE job_id = ${jobId}`);
    return found ?? assert.fail(`there is no job ${jobId}`);
  };
  return {
    url,
    api,
    db,
    wake,
    store,
    stale: () => worker.stale.count,
    ends,
    async queue({ timeoutMs = 60_000, maxDeferrals = 100, keepCompleted = true } = {}) {
      queues += 1;
      const name = `queue-${queues}`;
      await db.query(sql`
        INSERT INTO jobs.queues (queue, timeout_ms, max_deferrals, keep_completed, backoff_initial_ms, backoff_max_ms)
        VALUES (${name}, ${timeoutMs}, ${maxDeferrals}, ${keepCompleted}, 1, 1)`);
      await book.refresh();
      return name;
    },
    enqueue,
    async dead(queue, { error = 'it broke', ...more } = {}) {
      const jobId = await enqueue(queue, more);
      await db.query(sql`
        UPDATE jobs.job_queue SET status = 'dead_letter', retry_count = 3, completed_at = clock_timestamp(),
               error_message = ${error}, lease_epoch = nextval('platform.lease_epochs')
        WHERE job_id = ${jobId}`);
      return jobId;
    },
    async claim(queue, more = {}) {
      const answer = await api.post<{ jobs: readonly ClaimedBody[] }>(`${root}/queues/${queue}/claim`, {
        worker: 'w1',
        ...more,
      });
      assert.equal(answer.status, 200, answer.text);
      return answer.body.jobs;
    },
    tell: (jobId, what, body) => api.post(`${root}/${jobId}/${what}`, body),
    act: (jobId, action, body, actor) =>
      api.post(`${root}/${jobId}/${action}`, body, actor === undefined ? {} : { 'x-actor': actor }),
    row,
    async drop() {
      await server.stop(AbortSignal.timeout(5000));
      await wake.stop(AbortSignal.timeout(5000));
      await database.drop();
      const failures = logged().filter(({ level }) => level === 'error' || level === 'fatal');
      assert.deepEqual(failures, [], 'no request has cost a 500');
    },
  };
}
