import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { startQueueWorker, type WorkerScene } from '../../../tests/support/queue-worker.ts';
import { sql } from '../../platform/postgres/sql.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

/** Too long to be returned by the claim. */
const long = { text: randomBytes(20_000).toString('hex') };

type Row = Readonly<{ status: string; retry_count: number; deferrals: number; started_at: Date | null }>;

async function jobRow(jobId: string): Promise<Row> {
  const [row] = await database.db.query<Row>(sql`
    SELECT status, retry_count, deferrals, started_at FROM jobs.job_queue WHERE job_id = ${jobId}`);
  return row ?? assert.fail();
}

/** Reading a payload blocks until `letGo`. */
function slowRead() {
  const reading = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const wrapReadPayload: WorkerScene['wrapReadPayload'] = (read) => async (job) => {
    reading.resolve();
    await goOn.promise;
    return read(job);
  };
  return { reading: reading.promise, letGo: () => goOn.resolve(), wrapReadPayload };
}

describe('A long payload', () => {
  test('is there when its handler starts, and so is a JSON null', async (t) => {
    const seen: unknown[] = [];
    const { enqueue } = await startQueueWorker(database, t, ({ payload }) => void seen.push(payload));
    await enqueue(long);
    await enqueue(null);
    await eventually(async () => assert.equal(seen.length, 2));
    assert.ok(seen.some((payload) => JSON.stringify(payload) === JSON.stringify(long)));
    assert.ok(seen.includes(null));
  });

  test('may take longer to read than the timeout, which starts with the handler', async (t) => {
    const { reading, letGo, wrapReadPayload } = slowRead();
    let isAborted: boolean | null = null;
    const { enqueue } = await startQueueWorker(
      database,
      t,
      (_, { signal }) => void (isAborted = signal.aborted),
      { timeoutMs: () => 200, wrapReadPayload },
    );
    const { jobId } = await enqueue(long);
    await reading;
    const { started_at: claimedAt } = await jobRow(jobId);
    await eventually(async () => {
      const [row] = await database.db.query<{ is_late: boolean }>(sql`
        SELECT clock_timestamp() > ${claimedAt}::timestamptz + interval '600 milliseconds' AS is_late`);
      assert.ok(row?.is_late);
    });
    letGo();
    await eventually(async () => assert.equal((await jobRow(jobId)).status, 'completed'));
    assert.deepEqual([isAborted, (await jobRow(jobId)).retry_count], [false, 0]);
  });

  test('that is read after the stop is given back unstarted, at no cost', async (t) => {
    const { reading, letGo, wrapReadPayload } = slowRead();
    let hasBegun = false;
    const { enqueue, runner } = await startQueueWorker(database, t, () => void (hasBegun = true), {
      wrapReadPayload,
    });
    const { jobId } = await enqueue(long);
    await reading;
    const stopped = runner.stop(AbortSignal.timeout(30_000));
    letGo();
    await stopped;
    const { status, retry_count, deferrals } = await jobRow(jobId);
    assert.deepEqual([hasBegun, status, retry_count, deferrals], [false, 'pending', 0, 0]);
  });

  test('that cannot be read is reported, and retried with backoff, but not for ever', async (t) => {
    let reads = 0;
    const { enqueue } = await startQueueWorker(database, t, () => assert.fail(), {
      mayFail: true,
      wrapReadPayload: () => () => {
        reads += 1;
        return Promise.reject(new Error('a page is broken'));
      },
    });
    const { jobId } = await enqueue(long);
    await eventually(async () => assert.equal((await jobRow(jobId)).status, 'dead_letter'));
    const { retry_count } = await jobRow(jobId);
    assert.ok(retry_count === 3 && reads < 30, `${reads} reads`);
  });
});

test('the context of a handler can be destructured and spread', async (t) => {
  const keys = Promise.withResolvers<readonly string[]>();
  const { enqueue } = await startQueueWorker(database, t, (_, context) => {
    const { progress } = context;
    progress({ done: 1 });
    keys.resolve(Object.keys({ ...context }));
  });
  await enqueue();
  assert.deepEqual(await keys.promise, ['signal', 'progress', 'heartbeat']);
});
