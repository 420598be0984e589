import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from '../support/eventually.ts';
import { fastQueue, startJobsSystem, type JobsSystem } from '../support/jobs-system.ts';
import { startPartner, type Partner } from '../support/partner.ts';

/** A server that has nothing to do asks for jobs every five seconds; these jobs must not have to wait for that. */

type Scene = JobsSystem & Readonly<{ partner: Partner; startReplica(): Promise<void> }>;

async function startScene(t: TestContext): Promise<Scene> {
  const partner = await startPartner({ honoursKeys: false, script: () => ({ act: 'ok' }) });
  t.after(() => partner.stop());
  const queues = { push: { ...fastQueue, target: { type: 'http', url: partner.url } } };
  const jobs = await startJobsSystem({ queues });
  const replicas: JobsSystem[] = [];
  t.after(async () => {
    await Promise.all(replicas.map((replica) => replica.drop()));
    await jobs.drop();
  });
  return {
    ...jobs,
    partner,
    async startReplica() {
      replicas.push(await startJobsSystem({ queues, database: jobs.system.database }));
    },
  };
}

/** Until the workers are announced, and their first, short poll has passed. */
async function untilIdle({ system }: JobsSystem, workers = 1): Promise<void> {
  await eventually(async () => {
    const rows = await system.db.query(sql`
      SELECT 1 FROM platform.idle_workers WHERE channel = 'jobs:push' AND idle_until > clock_timestamp()`);
    assert.equal(rows.length, workers);
  });
  await delay(1500);
}

async function insertWithoutNotify({ system }: JobsSystem): Promise<string> {
  const [row] = await system.db.query<{ job_id: string }>(sql`
    INSERT INTO jobs.job_queue (queue, payload) VALUES ('push', '{}') RETURNING job_id`);
  return row?.job_id ?? assert.fail('no row');
}

test('a delayed job of an idle server runs when it is due, by one of two replicas', async (t) => {
  const scene = await startScene(t);
  await scene.startReplica();
  await untilIdle(scene, 2);
  const runAt = new Date(Date.now() + 1500);
  const jobId = await scene.job({ queue: 'push', run_at: runAt.toISOString() });
  const { started_at, run_at } = await scene.becomes(jobId, 'completed');
  const lateMs = (started_at?.getTime() ?? Infinity) - run_at.getTime();
  assert.ok(lateMs >= 0 && lateMs < 2500, `${lateMs} ms late`);
  assert.equal(scene.partner.requests.length, 1);
});

test('a job that was inserted without a notification is found by the next poll', async (t) => {
  const scene = await startScene(t);
  await untilIdle(scene);
  await scene.becomes(await insertWithoutNotify(scene), 'completed', 8000);
});

test('when the LISTEN connection is lost, workers look at once and poll', async (t) => {
  const scene = await startScene(t);
  await untilIdle(scene);
  const jobId = await insertWithoutNotify(scene);
  await scene.system.db.query(sql`
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND query LIKE 'LISTEN%'`);
  const { created_at, started_at } = await scene.becomes(jobId, 'completed');
  assert.ok((started_at?.getTime() ?? Infinity) - created_at.getTime() < 2500);
});

/** As measured by `bench/idle.ts`, beside others. */
const maxIdleTransactionsPerSecond = 5;

test('a server with nothing to do makes few transactions', async (t) => {
  const target = { type: 'http', url: 'http://127.0.0.1:9/' };
  const env = { OUTBOX_DESTINATIONS: JSON.stringify({ broker: target }) };
  const queues = { push: { ...fastQueue, target }, reports: { ...fastQueue, target } };
  const jobs = await startJobsSystem({ queues, env });
  t.after(() => jobs.drop());
  await untilIdle(jobs);
  // Until all loops have found nothing twice.
  await delay(10_000);
  const count = async (): Promise<number> => {
    const [row] = await jobs.system.db.query<{ count: number }>(sql`
      SELECT (xact_commit + xact_rollback)::float8 AS count FROM pg_stat_database WHERE datname = current_database()`);
    return row?.count ?? assert.fail('no row');
  };
  const [before, beganMs] = [await count(), performance.now()];
  await delay(20_000);
  const perSecond = ((await count()) - before) / ((performance.now() - beganMs) / 1000);
  t.diagnostic(`${perSecond.toFixed(1)} transactions/s`);
  assert.ok(perSecond <= maxIdleTransactionsPerSecond, `${perSecond} transactions/s`);
});
