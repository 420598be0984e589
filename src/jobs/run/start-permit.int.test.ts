import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { startQueueWorker } from '../../../tests/support/queue-worker.ts';
import { createTestJobStore } from '../../../tests/support/job-store.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import { sleep, systemClock } from '../../kernel/clock.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { createPuller } from '../pull/pull-jobs.ts';
import { startPermitMs } from '../queue-pause.ts';
import { createStartPermit } from './start-permit.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

async function pause(queue: string): Promise<void> {
  await database.db.query(sql`INSERT INTO jobs.queues (queue, paused) VALUES (${queue}, true)`);
}

async function statusesOf(queue: string): Promise<readonly string[]> {
  const rows = await database.db.query<{ status: string }>(sql`
    SELECT status FROM jobs.job_queue WHERE queue = ${queue} ORDER BY job_id`);
  return rows.map(({ status }) => status);
}

test('a permit is valid for a second after the check was sent, however late the response is', async () => {
  let nowMs = 0;
  let isPaused = false;
  let asks = 0;
  const permit = createStartPermit({ now: () => new Date(), monotonicMs: () => nowMs }, async () => {
    asks += 1;
    nowMs += 400;
    return isPaused;
  });
  assert.equal(permit.isValid(), false);
  assert.equal(await permit.ensure(), true);
  nowMs = startPermitMs - 1;
  assert.equal(await permit.ensure(), true);
  assert.equal(asks, 1);
  nowMs = startPermitMs;
  assert.equal(permit.isValid(), false);
  isPaused = true;
  assert.equal(await permit.ensure(), false);
  permit.confirm(nowMs - startPermitMs);
  assert.equal(permit.isValid(), false, 'an old answer is no permit');
});

test('jobs of a slow claim are not started if the queue was paused meanwhile', async (t) => {
  let skewMs = 0;
  let started = 0;
  const { queue, enqueue } = await startQueueWorker(database, t, () => void (started += 1), {
    skewMs: () => skewMs,
    wrapClaim: (claim) => async (options) => {
      const claimed = await claim(options);
      if (claimed.jobs.length === 0) return claimed;
      await pause(options.queue);
      skewMs += startPermitMs + 1;
      return claimed;
    },
  });
  await enqueue();
  await eventually(async () => {
    assert.ok(skewMs > 0);
    assert.deepEqual(await statusesOf(queue), ['pending']);
  });
  assert.equal(started, 0);
});

test('a job whose payload took long to read is not started if the queue was paused meanwhile', async (t) => {
  let skewMs = 0;
  let started = 0;
  const { queue, enqueue } = await startQueueWorker(database, t, () => void (started += 1), {
    skewMs: () => skewMs,
    wrapReadPayload: (read) => async (job) => {
      const reading = await read(job);
      await pause(queue);
      skewMs += startPermitMs + 1;
      return reading;
    },
  });
  await enqueue('x'.repeat(100_000));
  await eventually(async () => {
    assert.ok(skewMs > 0);
    assert.deepEqual(await statusesOf(queue), ['pending']);
  });
  assert.equal(started, 0);
});

test('jobs of a slow claim over HTTP are given back if the queue was paused meanwhile', async () => {
  const { db } = database;
  const queue = 'pulled-late';
  let skewMs = 0;
  const slow: Database = {
    ...db,
    async transaction(work, options) {
      const claimed = await db.transaction(work, options);
      await pause(queue);
      skewMs += startPermitMs + 1;
      return claimed;
    },
  };
  const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + skewMs };
  const puller = createPuller({
    ...createTestJobStore(slow, { worker: { ...createTestWorker(db), clock } }).work,
    counts: { claimed: () => {}, settled: () => {} },
    waitForWork: (_queue, ms, signal) => sleep(ms, signal),
  });
  await db.query(sql`SELECT job_id FROM jobs.enqueue_many(${queue}, '[{"payload": 1}, {"payload": 2}]')`);
  const asked = { queue, owner: 'pull:w', claimedBy: null, limit: 10, leaseMs: 60_000 };
  const pulled = await puller.pull(asked, {
    waitMs: 0,
    signal: new AbortController().signal,
    reserve: async () => {},
  });
  assert.deepEqual(pulled, []);
  assert.deepEqual(await statusesOf(queue), ['pending', 'pending']);
});
