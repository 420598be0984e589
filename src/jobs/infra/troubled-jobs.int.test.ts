import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { startQueueWorker } from '../../../tests/support/queue-worker.ts';
import { onceAborted } from '../../kernel/clock.ts';
import { createSoloGate } from '../../kernel/solo-gate.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { busy } from '../domain/handler-signals.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

async function column(jobId: string, name: 'status' | 'progress' | 'retry_count' | 'deferrals') {
  const [row] = await database.db.query<Record<string, unknown>>(sql`
    SELECT status, progress, retry_count, deferrals FROM jobs.job_queue WHERE job_id = ${jobId}`);
  return row?.[name];
}

test('a job that took its worker down and has one attempt left runs when no queue of the process has another', async (t) => {
  const solo = createSoloGate();
  let others = 0;
  let beside = 0;
  const busyQueue = await startQueueWorker(
    database,
    t,
    async () => {
      others += 1;
      await new Promise((resolve) => setTimeout(resolve, 1));
      others -= 1;
    },
    { solo },
  );
  const dangerous = await startQueueWorker(
    database,
    t,
    async () => {
      for (let look = 0; look < 20; look += 1) {
        beside += others;
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    },
    { solo },
  );
  const stopFilling = new AbortController();
  const filling = (async () => {
    while (!stopFilling.signal.aborted) await busyQueue.enqueue();
  })();
  await eventually(() => assert.ok(others > 0));
  const { jobId } = await dangerous.store.enqueue({
    queue: dangerous.queue,
    payload: '{}',
    dedupeKey: null,
    priority: 0,
    runAt: new Date(Date.now() + 3_600_000),
    maxRetries: 1,
    trace: null,
  });
  await database.db.query(sql`
    UPDATE jobs.job_queue SET lease_lost = true, run_at = now(), sort_at = now() WHERE job_id = ${jobId}`);
  await eventually(async () => assert.equal(await column(jobId, 'status'), 'completed'));
  stopFilling.abort();
  await filling;
  assert.equal(beside, 0);
});

test('what a handler says about its progress is kept while it runs', async (t) => {
  const goOn = Promise.withResolvers<void>();
  const { enqueue } = await startQueueWorker(database, t, async (_job, { progress }) => {
    progress({ pages: 3 });
    await goOn.promise;
  });
  const { jobId } = await enqueue();
  await eventually(async () => assert.deepEqual(await column(jobId, 'progress'), { pages: 3 }));
  goOn.resolve();
});

test('a heartbeat tells a handler that its job was taken away', async (t) => {
  const heard = Promise.withResolvers<unknown>();
  const { enqueue, worker } = await startQueueWorker(database, t, async (job, { heartbeat }) => {
    await heartbeat();
    await database.db.query(sql`
      UPDATE jobs.job_queue SET lease_epoch = nextval('platform.lease_epochs') WHERE job_id = ${job.jobId}`);
    await heartbeat().catch(heard.resolve);
  });
  await enqueue();
  assert.match(String(await heard.promise), /the job was taken away/);
  assert.equal(worker.stale.count, 0, 'what is known to be lost is not settled');
});

test('a worker that hears of a cancel looks at its leases at once', async (t) => {
  const started = Promise.withResolvers<void>();
  const aborted = Promise.withResolvers<void>();
  const { enqueue, runner } = await startQueueWorker(database, t, async (_job, { signal }) => {
    started.resolve();
    await onceAborted(signal);
    aborted.resolve();
  });
  const { jobId } = await enqueue();
  await started.promise;
  await database.db.query(sql`
    UPDATE jobs.job_queue SET lease_epoch = nextval('platform.lease_epochs') WHERE job_id = ${jobId}`);
  runner.checkLeases();
  await aborted.promise;
});

test('who cannot renew stops when the lease is over', async (t) => {
  let skewMs = 0;
  const started = Promise.withResolvers<void>();
  const aborted = Promise.withResolvers<unknown>();
  const { enqueue, worker } = await startQueueWorker(
    database,
    t,
    async (_job, { signal }) => {
      started.resolve();
      await onceAborted(signal);
      aborted.resolve(signal.reason);
    },
    {
      mayFail: true,
      timeoutMs: () => 3_600_000,
      skewMs: () => skewMs,
      wrap: (store) => ({ ...store, renew: () => Promise.reject(new Error('the database is away')) }),
    },
  );
  await enqueue();
  await started.promise;
  skewMs = 31_000;
  assert.match(String(await aborted.promise), /lease of the job is over/);
  assert.equal(worker.stale.count, 0);
});

test('a handler that does not stop loses its slot after a while, and at so many of them nothing more is claimed', async (t) => {
  let skewMs = 0;
  let started = 0;
  const goOn = Promise.withResolvers<void>();
  const { enqueue, runner } = await startQueueWorker(
    database,
    t,
    async () => {
      started += 1;
      await goOn.promise;
    },
    { concurrency: 2, maxPrefetch: 0, timeoutMs: () => 1000, skewMs: () => skewMs },
  );
  await Promise.all(Array.from({ length: 5 }, () => enqueue()));
  await eventually(() => assert.equal(started, 2));
  skewMs += 1100;
  await eventually(async () => {
    const [row] = await database.db.query<{ count: bigint }>(sql`
      SELECT count(*) FROM jobs.job_attempts WHERE error LIKE 'timeout: no end within 1000 ms%'`);
    assert.equal(row?.count, 2n);
  });
  assert.equal(runner.zombies(), 0);
  skewMs += 5100;
  await eventually(() => assert.equal(runner.zombies(), 2));
  assert.equal(started, 2, 'nothing more is claimed');
  goOn.resolve();
  await eventually(() => assert.equal(runner.zombies(), 0));
  await eventually(() => assert.ok(started > 2));
});

test('whoever is busy costs no attempt, and is asked again after the backoff at the earliest', async (t) => {
  let asked = 0;
  const { enqueue } = await startQueueWorker(database, t, () => {
    asked += 1;
    if (asked < 3) throw busy('429');
  });
  const { jobId } = await enqueue();
  await eventually(async () => assert.equal(await column(jobId, 'status'), 'completed'));
  assert.equal(await column(jobId, 'retry_count'), 0);
  assert.equal(await column(jobId, 'deferrals'), 2);
});

test('a renewal that hangs keeps neither a timeout nor the end of a lease from being noticed', async (t) => {
  const aborted = Promise.withResolvers<unknown>();
  const { enqueue } = await startQueueWorker(
    database,
    t,
    async (_job, { signal }) => {
      await onceAborted(signal);
      aborted.resolve(signal.reason);
    },
    {
      mayFail: true,
      timeoutMs: () => 300,
      leaseMs: 200,
      wrap: (store) => ({ ...store, renew: () => new Promise(() => {}) }),
    },
  );
  await enqueue();
  assert.match(String(await aborted.promise), /lease of the job is over|no end within 300 ms/);
});

test('of a queue that is limited over all processes nothing is claimed ahead', async (t) => {
  const limits: number[] = [];
  const { enqueue } = await startQueueWorker(database, t, () => undefined, {
    concurrency: 2,
    maxPrefetch: 100,
    isLimited: true,
    wrap: (store) => ({
      ...store,
      claim(options) {
        limits.push(options.limit);
        return store.claim(options);
      },
    }),
  });
  const added = await Promise.all(Array.from({ length: 30 }, () => enqueue()));
  for (const { jobId } of added)
    await eventually(async () => assert.equal(await column(jobId, 'status'), 'completed'));
  assert.ok(Math.max(...limits) <= 2, `claimed ${Math.max(...limits)}`);
});

test('an end whose answer was lost is written once: one failure, one line, one event', async (t) => {
  let losesAnswer = true;
  const { enqueue, queue } = await startQueueWorker(
    database,
    t,
    () => {
      throw new Error('it broke');
    },
    {
      maxRetries: 1,
      database: {
        ...database.db,
        async query<Row>(statement: Sql): Promise<readonly Row[]> {
          const rows = await database.db.query<Row>(statement);
          if (losesAnswer && statement.text.includes('settled AS')) {
            losesAnswer = false;
            throw Object.assign(new Error('reset'), { code: 'ECONNRESET' });
          }
          return rows;
        },
      },
    },
  );
  const { jobId } = await enqueue();
  await eventually(async () => assert.equal(await column(jobId, 'status'), 'dead_letter'));
  await eventually(() => assert.equal(losesAnswer, false));
  const [counted] = await database.db.query<{ failures: bigint; events: bigint; retry_count: number }>(sql`
    SELECT (SELECT count(*) FROM jobs.job_attempts WHERE job_id = ${jobId}) AS failures,
           (SELECT count(*) FROM platform.notify_events WHERE subject = ${queue}) AS events,
           retry_count FROM jobs.job_queue WHERE job_id = ${jobId}`);
  assert.deepEqual(counted, { failures: 1n, events: 1n, retry_count: 1 });
});

test('a job that is put off for no time keeps its priority, and has no mark of a lost worker any more', async (t) => {
  const { store, queue } = await startQueueWorker(database, t, () => undefined, { concurrency: 1 });
  const other = `${queue}-other`;
  const { jobId } = await store.enqueue({
    queue: other,
    payload: '{}',
    dedupeKey: null,
    priority: 100,
    runAt: null,
    maxRetries: 3,
    trace: null,
  });
  await database.db.query(sql`UPDATE jobs.job_queue SET lease_lost = true WHERE job_id = ${jobId}`);
  const { jobs: claimed } = await store.claim({
    queue: other,
    limit: 1,
    leaseMs: 60_000,
    lane: 'together',
    after: null,
  });
  const [job] = claimed;
  assert.ok(job);
  await store.settle(other, [
    { job, startedAt: new Date(), end: 'deferred', delayMs: 0, reason: 'released' },
  ]);
  const [row] = await database.db.query<{ ahead: number; lease_lost: boolean }>(sql`
    SELECT (EXTRACT(epoch FROM run_at - sort_at) / 60)::float8 AS ahead, lease_lost
    FROM jobs.job_queue WHERE job_id = ${jobId}`);
  assert.deepEqual(row, { ahead: 100, lease_lost: false });
});
