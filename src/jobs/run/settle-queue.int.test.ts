import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { isSettle, startQueueWorker, type WorkerScene } from '../../../tests/support/queue-worker.ts';
import { sql } from '../../platform/postgres/sql.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

type Row = Readonly<{ status: string; retry_count: number; lease_until: Date | null; now: Date }>;

async function jobRow(jobId: string): Promise<Row> {
  const [row] = await database.db.query<Row>(sql`
    SELECT status, retry_count, lease_until, clock_timestamp() AS now FROM jobs.job_queue WHERE job_id = ${jobId}`);
  return row ?? assert.fail();
}

/** Settles block until `letGo`. */
function heldUp() {
  const ended = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const beforeQuery: WorkerScene['beforeQuery'] = async (text) => {
    if (!isSettle(text)) return;
    ended.resolve();
    await goOn.promise;
  };
  return { ended: ended.promise, letGo: () => goOn.resolve(), beforeQuery };
}

const leaseMs = 1500;

/** Waits until the original lease has expired. */
async function outlive(jobId: string): Promise<Row> {
  const { lease_until: first } = await jobRow(jobId);
  return eventually(async () => {
    const row = await jobRow(jobId);
    assert.ok(first !== null && row.now.getTime() > first.getTime() + leaseMs);
    return row;
  });
}

test('a finished job keeps its lease for as long as it cannot be settled', async (t) => {
  let runs = 0;
  const { beforeQuery, ended, letGo } = heldUp();
  const { enqueue, store } = await startQueueWorker(database, t, () => void (runs += 1), {
    leaseMs,
    beforeQuery,
  });
  const { jobId } = await enqueue();
  await ended;
  const row = await outlive(jobId);
  assert.equal(row.status, 'running');
  assert.equal(await store.reap(), 0, 'its lease is not over');
  letGo();
  await eventually(async () => assert.equal((await jobRow(jobId)).status, 'completed'));
  assert.deepEqual([runs, (await jobRow(jobId)).retry_count], [1, 0]);
});

test('even while its worker stops, until the deadline', async (t) => {
  const { beforeQuery, ended, letGo } = heldUp();
  const { enqueue, runner, store } = await startQueueWorker(database, t, () => {}, { leaseMs, beforeQuery });
  const { jobId } = await enqueue();
  await ended;
  const stopped = runner.stop(AbortSignal.timeout(60_000));
  await outlive(jobId);
  assert.equal(await store.reap(), 0, 'its lease is not over');
  letGo();
  await stopped;
  assert.equal((await jobRow(jobId)).status, 'completed');
});
