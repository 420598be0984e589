import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { startQueueWorker, type WorkerScene } from '../../../tests/support/queue-worker.ts';
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

/** Nothing that has ended can be written down until it is let go. */
function heldUp() {
  const ended = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const wrap: WorkerScene['wrap'] = (store) => ({
    ...store,
    async settle(...settled) {
      ended.resolve();
      await goOn.promise;
      return store.settle(...settled);
    },
  });
  return { ended: ended.promise, letGo: () => goOn.resolve(), wrap };
}

const leaseMs = 1500;

/** Until the lease that the job had is long over. */
async function outlive(jobId: string): Promise<Row> {
  const { lease_until: first } = await jobRow(jobId);
  return eventually(async () => {
    const row = await jobRow(jobId);
    assert.ok(first !== null && row.now.getTime() > first.getTime() + leaseMs);
    return row;
  });
}

test('a job that has ended stays with its worker for as long as that cannot be written down', async (t) => {
  let runs = 0;
  const { wrap, ended, letGo } = heldUp();
  const { enqueue, store } = await startQueueWorker(database, t, () => void (runs += 1), { leaseMs, wrap });
  const { jobId } = await enqueue();
  await ended;
  const row = await outlive(jobId);
  assert.equal(row.status, 'running');
  assert.equal(await store.reap(), 0, 'its lease is not over');
  letGo();
  await eventually(async () => assert.equal((await jobRow(jobId)).status, 'completed'));
  assert.deepEqual([runs, (await jobRow(jobId)).retry_count], [1, 0]);
});

test('also while its worker stops, until the time for that is over', async (t) => {
  const { wrap, ended, letGo } = heldUp();
  const { enqueue, runner, store } = await startQueueWorker(database, t, () => {}, { leaseMs, wrap });
  const { jobId } = await enqueue();
  await ended;
  const stopped = runner.stop(AbortSignal.timeout(60_000));
  await outlive(jobId);
  assert.equal(await store.reap(), 0, 'its lease is not over');
  letGo();
  await stopped;
  assert.equal((await jobRow(jobId)).status, 'completed');
});
