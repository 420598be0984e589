import assert from 'node:assert/strict';
import { after, before, test, type TestContext } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { startQueueWorker, type WorkerScene } from '../../../tests/support/queue-worker.ts';
import { sleep } from '../../kernel/clock.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { notRetryable, retryAfter, snooze } from '../domain/handler-signals.ts';
import type { Handler } from './worker.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

const startWorker = (t: TestContext, handler: Handler, more: WorkerScene = {}) =>
  startQueueWorker(database, t, handler, more);

type Row = Readonly<{
  status: string;
  retry_count: number;
  error_message: string | null;
  result: unknown;
  deferrals: number;
}>;

async function jobBecomes(jobId: string, status: string): Promise<Row> {
  return eventually(async () => {
    const [row] = await database.db.query<Row>(sql`
      SELECT status, retry_count, error_message, result, deferrals FROM jobs.job_queue WHERE job_id = ${jobId}`);
    assert.equal(row?.status, status);
    return row;
  });
}

test('the handler gets the job with its payload, and its result is stored', async (t) => {
  const { enqueue } = await startWorker(t, (job) => ({ doubled: (job.payload as { n: number }).n * 2 }));
  const { jobId } = await enqueue({ n: 21 });
  assert.deepEqual((await jobBecomes(jobId, 'completed')).result, { doubled: 42 });
});

test('a job whose handler throws is retried until its retries are used up, and then it is dead', async (t) => {
  let attempts = 0;
  const { enqueue } = await startWorker(t, () => {
    attempts += 1;
    throw new Error(`attempt ${attempts}`);
  });
  const { jobId } = await enqueue();
  const row = await jobBecomes(jobId, 'dead_letter');
  assert.deepEqual([attempts, row.retry_count, row.error_message], [3, 3, 'attempt 3']);
  const noted = await database.db.query<{ error: string }>(sql`
    SELECT error FROM jobs.job_attempts WHERE job_id = ${jobId} ORDER BY id`);
  assert.deepEqual(
    noted.map(({ error }) => error),
    ['attempt 1', 'attempt 2', 'attempt 3'],
  );
});

test('a handler can signal not retryable, retry after and snooze', async (t) => {
  const { enqueue } = await startWorker(t, (job) => {
    const { say } = job.payload as { say: string };
    if (say === 'never') throw notRetryable('no such article');
    if (say === 'later' && job.retryCount === 0) throw retryAfter(10, 'busy');
    if (say === 'not now' && job.deferrals < 2) throw snooze(5);
    return 'done';
  });
  const [never, later, notNow] = [
    await enqueue({ say: 'never' }),
    await enqueue({ say: 'later' }),
    await enqueue({ say: 'not now' }),
  ];
  assert.equal((await jobBecomes(never.jobId, 'dead_letter')).retry_count, 1);
  assert.equal((await jobBecomes(later.jobId, 'completed')).retry_count, 1);
  const snoozed = await jobBecomes(notNow.jobId, 'completed');
  assert.deepEqual([snoozed.retry_count, snoozed.deferrals], [0, 2]);
});

test('a handler that times out is told to stop, and the job has failed', async (t) => {
  const aborted = Promise.withResolvers<unknown>();
  const { enqueue } = await startWorker(
    t,
    (_job, { signal }) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          aborted.resolve(signal.reason);
          reject(new Error('stopped'));
        });
      }),
    { timeoutMs: () => 50 },
  );
  const { jobId } = await enqueue();
  assert.match(String(await aborted.promise), /timed out after 50 ms/);
  assert.match((await jobBecomes(jobId, 'dead_letter')).error_message ?? '', /^timed out after 50 ms/);
});

test('many jobs run in parallel, but never more than concurrency', async (t) => {
  let running = 0;
  let most = 0;
  const { enqueue, queue } = await startWorker(
    t,
    async () => {
      running += 1;
      most = Math.max(most, running);
      await sleep(2);
      running -= 1;
    },
    { concurrency: 8, maxPrefetch: 16 },
  );
  await Promise.all(Array.from({ length: 200 }, (_, n) => enqueue({ n })));
  await eventually(async () => {
    const [row] = await database.db.query<{ count: bigint }>(sql`
      SELECT count(*) FROM jobs.job_queue WHERE queue = ${queue} AND status = 'completed'`);
    assert.equal(row?.count, 200n);
  });
  assert.ok(most <= 8 && most > 1);
});

test('a handler whose job is cancelled is told to stop, and its outcome is stale', async (t) => {
  const started = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const { enqueue, worker } = await startWorker(t, async () => {
    started.resolve();
    await goOn.promise;
  });
  const { jobId } = await enqueue();
  await started.promise;
  await database.db.query(sql`
    UPDATE jobs.job_queue
    SET status = 'dead_letter', resolution = 'cancelled', lease_epoch = nextval('platform.lease_epochs')
    WHERE job_id = ${jobId}`);
  goOn.resolve();
  await eventually(() => assert.equal(worker.stale.count, 1));
  assert.equal((await jobBecomes(jobId, 'dead_letter')).result, null);
});

test('the lease of a long job is renewed', async (t) => {
  const { enqueue, store } = await startWorker(t, () => sleep(2400), { leaseMs: 900 });
  const { jobId } = await enqueue();
  const reaping = new AbortController();
  const reaper = (async () => {
    while (!reaping.signal.aborted) {
      await store.reap();
      await sleep(20);
    }
  })();
  const row = await jobBecomes(jobId, 'completed');
  reaping.abort();
  await reaper;
  assert.equal(row.retry_count, 0);
});

test('a stop lets running jobs finish, and gives back jobs that were claimed ahead at no cost', async (t) => {
  const goOn = Promise.withResolvers<void>();
  let started = 0;
  const { enqueue, runner, queue } = await startWorker(
    t,
    async ({ payload }) => {
      if ((payload as { isShort?: boolean }).isShort === true) return;
      started += 1;
      await goOn.promise;
    },
    { concurrency: 2, maxPrefetch: 6 },
  );
  // A worker claims ahead once it has measured how long jobs take.
  await jobBecomes((await enqueue({ isShort: true })).jobId, 'completed');
  await Promise.all(Array.from({ length: 8 }, () => enqueue()));
  await eventually(async () => {
    const [row] = await database.db.query<{ count: number }>(sql`
      SELECT count(*)::int AS count FROM jobs.job_queue WHERE queue = ${queue} AND status = 'running'`);
    assert.ok((row?.count ?? 0) > 2, 'nothing was claimed ahead');
  });
  assert.equal(started, 2);
  const places = await database.db.query<{ job_id: string; sort_at: Date }>(sql`
    SELECT job_id, sort_at FROM jobs.job_queue WHERE queue = ${queue}`);
  const stopped = runner.stop(AbortSignal.timeout(5000));
  goOn.resolve();
  await stopped;
  const rows = await database.db.query<{
    job_id: string;
    status: string;
    deferrals: number;
    sort_at: Date;
    lease_epoch: bigint;
  }>(sql`
    SELECT job_id, status, deferrals, sort_at, lease_epoch FROM jobs.job_queue WHERE queue = ${queue} AND status <> 'completed'`);
  assert.equal(rows.length, 6);
  assert.ok(
    rows.some((row) => row.lease_epoch > 0n),
    'some had been claimed',
  );
  for (const row of rows) {
    assert.deepEqual([row.status, row.deferrals], ['pending', 0]);
    assert.deepEqual(row.sort_at, places.find(({ job_id }) => job_id === row.job_id)?.sort_at, 'its place');
  }
});

test('completed jobs are deleted if the queue does not keep them', async (t) => {
  const { enqueue, queue, worker } = await startWorker(t, () => 'done', { keepCompleted: false });
  await Promise.all(Array.from({ length: 50 }, () => enqueue()));
  await eventually(async () => {
    const rows = await database.db.query(sql`SELECT 1 FROM jobs.job_queue WHERE queue = ${queue}`);
    assert.equal(rows.length, 0);
  });
  assert.equal(worker.stale.count, 0);
});
