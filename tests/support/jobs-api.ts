import assert from 'node:assert/strict';
import { addActionRoutes } from '../../src/jobs/decide/action-routes.ts';
import type { NewJob } from '../../src/jobs/enqueue/enqueue-job.ts';
import type { JobMetrics } from '../../src/jobs/job-metrics.ts';
import { createPuller } from '../../src/jobs/pull/pull-jobs.ts';
import { createWaitForJobs } from '../../src/jobs/pull/wait-for-jobs.ts';
import { addWorkerRoutes } from '../../src/jobs/pull/worker-routes.ts';
import { createQueues } from '../../src/jobs/queues.ts';
import { systemClock } from '../../src/kernel/clock.ts';
import type { HttpApp } from '../../src/platform/http/http-app.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { isOutage } from '../../src/platform/postgres/sqlstate.ts';
import { createWake, type Wake } from '../../src/platform/work/wake.ts';
import { createApiClient, type Answer, type ApiClient } from './api-client.ts';
import { createTestDatabase } from './database.ts';
import { createTestJobStore, type TestJobStore } from './job-store.ts';
import { noMasking } from './no-masking.ts';
import { createTestServer } from './test-server.ts';
import { createTestWorker } from './worker.ts';

/**
 * The routes of pull/ and decide/, with a real server and a real database. No worker runs, and expired leases stay
 * until a test reaps them.
 */
export type JobsApi = Readonly<{
  url: string;
  api: ApiClient;
  db: Database;
  wake: Wake;
  store: TestJobStore;
  /** Stale writes so far. */
  stale(): number;
  /** The counted settlements: queue, outcome, and the status after it. */
  settled: readonly Settled[];
  /** Adds a queue with these settings instead of the defaults; returns its name. */
  queue(settings?: QueueColumns): Promise<string>;
  enqueue(queue: string, more?: Partial<NewJob>): Promise<string>;
  /** Adds a dead letter; returns its id. */
  dead(queue: string, more?: Partial<NewJob> & Readonly<{ error?: string }>): Promise<string>;
  claim(queue: string, more?: object): Promise<readonly ClaimedBody[]>;
  report(jobId: string, what: string, body?: object): Promise<Answer<FinishedBody>>;
  act(jobId: string, action: string, body?: object, actor?: string): Promise<Answer<FinishedBody>>;
  row(jobId: string): Promise<JobRow>;
  drop(): Promise<void>;
}>;

type Settled = Readonly<[queue: string, outcome: string, status: string | null]>;

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

let made = 0;

export async function startJobsApi(): Promise<JobsApi> {
  const database = await createTestDatabase();
  const { db } = database;
  const worker = createTestWorker(db);
  const queues = createQueues(db);
  const store = createTestJobStore(db, { worker, queues });
  const wake = createWake(db, { listen: true, worker: 'test', onError: () => {} });
  await wake.start();
  const settled: Settled[] = [];
  const counts: Pick<JobMetrics, 'claimed' | 'settled'> = {
    claimed: () => {},
    settled: (queue, { outcome }, status) => void settled.push([queue, outcome, status]),
  };
  const { server, logged } = createTestServer({ isOutage });
  server.addRoutes('jobs', (app) => addRoutes(app, { store, counts, wake }));
  await server.start();
  const url = `http://127.0.0.1:${server.address()?.port}`;
  const api = createApiClient(url);
  return {
    url,
    api,
    db,
    wake,
    store,
    stale: () => worker.stale.count,
    settled,
    async queue(columns) {
      const name = await insertQueue(db, columns);
      await queues.refresh();
      return name;
    },
    enqueue: async (queue, more) => (await store.enqueue(queue, more)).jobId,
    dead: (queue, more) => insertDead(store, queue, more),
    async claim(queue, more = {}) {
      const answer = await api.post<{ jobs: readonly ClaimedBody[] }>(`${root}/queues/${queue}/claim`, {
        worker: 'w1',
        ...more,
      });
      assert.equal(answer.status, 200, answer.text);
      return answer.body.jobs;
    },
    report: (jobId, what, body) => api.post(`${root}/${jobId}/${what}`, body),
    act: (jobId, action, body, actor) =>
      api.post(`${root}/${jobId}/${action}`, body, actor === undefined ? {} : { 'x-actor': actor }),
    row: (jobId) => selectRow(db, jobId),
    async drop() {
      await server.stop(AbortSignal.timeout(5000));
      await wake.stop(AbortSignal.timeout(5000));
      await database.drop();
      const failures = logged().filter(({ level }) => level === 'error' || level === 'fatal');
      assert.deepEqual(failures, [], 'no request has caused a 500');
    },
  };
}

function addRoutes(
  app: HttpApp,
  {
    store: { work },
    counts,
    wake,
  }: Readonly<{ store: TestJobStore; counts: Pick<JobMetrics, 'claimed' | 'settled'>; wake: Wake }>,
): void {
  const puller = createPuller({ ...work, counts, waitForWork: createWaitForJobs(wake) });
  addWorkerRoutes(app, { ...work, counts, puller });
  addActionRoutes(app, {
    db: work.db,
    masking: noMasking('queues', 'jobs:payloads:view'),
    clock: systemClock,
    log: { info: () => {} },
    queueNames: async () =>
      (await work.db.query<{ queue: string }>(sql`SELECT queue FROM jobs.queues`)).map(({ queue }) => queue),
  });
}

async function insertQueue(db: Database, columns: QueueColumns = {}): Promise<string> {
  const { timeoutMs = 60_000, maxDeferrals = 100, keepCompleted = true } = columns;
  made += 1;
  const name = `queue-${made}`;
  await db.query(sql`
    INSERT INTO jobs.queues (queue, timeout_ms, max_deferrals, keep_completed, backoff_initial_ms, backoff_max_ms)
    VALUES (${name}, ${timeoutMs}, ${maxDeferrals}, ${keepCompleted}, 1, 1)`);
  return name;
}

async function insertDead(
  store: TestJobStore,
  queue: string,
  { error = 'it broke', ...more }: Partial<NewJob> & Readonly<{ error?: string }> = {},
): Promise<string> {
  const { jobId } = await store.enqueue(queue, more);
  await store.work.db.query(sql`
    UPDATE jobs.job_queue SET status = 'dead_letter', retry_count = 3, completed_at = clock_timestamp(),
           error_message = ${error}, lease_epoch = nextval('platform.lease_epochs')
    WHERE job_id = ${jobId}`);
  return jobId;
}

async function selectRow(db: Database, jobId: string): Promise<JobRow> {
  const [found] = await db.query<JobRow>(sql`
    SELECT status, resolution, retry_count, deferrals, error_message, result, progress, started_at, completed_at,
           lease_owner, lease_until, lease_epoch
    FROM jobs.job_queue WHERE job_id = ${jobId}`);
  return found ?? assert.fail(`there is no job ${jobId}`);
}
