import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { isRenewal, startQueueWorker } from '../../../tests/support/queue-worker.ts';
import { onceAborted } from '../../kernel/clock.ts';
import { createSoloGate } from '../../platform/work/solo-gate.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { busy, outage } from '../domain/handler-signals.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

async function column(jobId: string, name: 'status' | 'progress' | 'retry_count' | 'deferrals') {
  const [row] = await database.db.query<Record<string, unknown>>(sql`
    SELECT status, progress, retry_count, deferrals FROM jobs.job_queue WHERE job_id = ${jobId}`);
  return row?.[name];
}

test('a job that crashed its worker and has one attempt left runs while no queue of the process runs another', async (t) => {
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
  const { jobId } = await dangerous.store.enqueue(dangerous.queue, {
    runAt: new Date(Date.now() + 3_600_000),
    maxRetries: 1,
  });
  await database.db.query(sql`
    UPDATE jobs.job_queue SET lease_lost = true, run_at = now(), sort_at = now() WHERE job_id = ${jobId}`);
  await eventually(async () => assert.equal(await column(jobId, 'status'), 'completed'));
  stopFilling.abort();
  await filling;
  assert.equal(beside, 0);
});

test('progress is stored while the handler runs', async (t) => {
  const goOn = Promise.withResolvers<void>();
  const { enqueue } = await startQueueWorker(database, t, async (_job, { progress }) => {
    progress({ pages: 3 });
    await goOn.promise;
  });
  const { jobId } = await enqueue();
  await eventually(async () => assert.deepEqual(await column(jobId, 'progress'), { pages: 3 }));
  goOn.resolve();
});

test('a heartbeat throws if the lease of the job was lost', async (t) => {
  const heard = Promise.withResolvers<unknown>();
  const { enqueue, worker } = await startQueueWorker(database, t, async (job, { heartbeat }) => {
    await heartbeat();
    await database.db.query(sql`
      UPDATE jobs.job_queue SET lease_epoch = nextval('platform.lease_epochs') WHERE job_id = ${job.jobId}`);
    await heartbeat().catch(heard.resolve);
  });
  await enqueue();
  assert.match(String(await heard.promise), /lease was lost/);
  assert.equal(worker.stale.count, 0, 'what is known to be lost is not settled');
});

test('a worker that is notified of a cancel checks its leases at once', async (t) => {
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

test('a handler is told to stop when its lease cannot be renewed', async (t) => {
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
      beforeQuery: (text) => {
        if (isRenewal(text)) throw new Error('the database is unavailable');
      },
    },
  );
  await enqueue();
  await started.promise;
  skewMs = 31_000;
  assert.match(String(await aborted.promise), /lease of the job expired/);
  assert.equal(worker.stale.count, 0);
});

test('a handler that does not stop loses its slot, and with too many of them nothing more is claimed', async (t) => {
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
      SELECT count(*) FROM jobs.job_attempts WHERE error LIKE 'timed out after 1000 ms%'`);
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

test('a busy signal costs no attempt, and the job waits for its backoff', async (t) => {
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

test('a renewal that hangs delays neither timeouts nor the detection of expired leases', async (t) => {
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
      beforeQuery: (text) => (isRenewal(text) ? new Promise<void>(() => {}) : undefined),
    },
  );
  await enqueue();
  assert.match(String(await aborted.promise), /lease of the job expired|timed out after 300 ms/);
});

test('nothing is claimed ahead from a limited queue', async (t) => {
  const limits: number[] = [];
  const { enqueue } = await startQueueWorker(database, t, () => undefined, {
    concurrency: 2,
    maxPrefetch: 100,
    isLimited: true,
    wrapClaim: (claim) => (options) => {
      limits.push(options.limit);
      return claim(options);
    },
  });
  const added = await Promise.all(Array.from({ length: 30 }, () => enqueue()));
  for (const { jobId } of added)
    await eventually(async () => assert.equal(await column(jobId, 'status'), 'completed'));
  assert.ok(Math.max(...limits) <= 2, `claimed ${Math.max(...limits)}`);
});

test('a settle whose response was lost is stored once: one failure, one attempt, one event', async (t) => {
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

test('a job that is deferred without delay keeps its priority and loses its lease_lost mark', async (t) => {
  const { store, queue } = await startQueueWorker(database, t, () => undefined, { concurrency: 1 });
  const other = `${queue}-other`;
  const { jobId } = await store.enqueue(other, { priority: 100 });
  await database.db.query(sql`UPDATE jobs.job_queue SET lease_lost = true WHERE job_id = ${jobId}`);
  const { jobs: claimed } = await store.claim({ queue: other });
  const [job] = claimed;
  assert.ok(job);
  await store.settle(other, [{ job, ran: null, outcome: 'deferred', delayMs: 0, reason: 'released' }]);
  const [row] = await database.db.query<{ ahead: number; lease_lost: boolean }>(sql`
    SELECT (EXTRACT(epoch FROM run_at - sort_at) / 60)::float8 AS ahead, lease_lost
    FROM jobs.job_queue WHERE job_id = ${jobId}`);
  assert.deepEqual(row, { ahead: 100, lease_lost: false });
});

test('an outage costs neither an attempt nor a deferral, however long it lasts', async (t) => {
  let calls = 0;
  const { enqueue } = await startQueueWorker(database, t, () => {
    calls += 1;
    // More than maxDeferrals and maxRetries together.
    if (calls <= 8) throw outage('nobody is there');
  });
  const { jobId } = await enqueue();
  await eventually(async () => assert.equal(await column(jobId, 'status'), 'completed'));
  assert.deepEqual([await column(jobId, 'retry_count'), await column(jobId, 'deferrals'), calls], [0, 0, 9]);
});
