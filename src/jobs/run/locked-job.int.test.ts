import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { startQueueWorker } from '../../../tests/support/queue-worker.ts';
import { sql } from '../../platform/postgres/sql.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

type Row = Readonly<{ status: string; retry_count: number; lease_until: Date | null }>;

async function find(jobId: string): Promise<Row> {
  const [row] = await database.db.query<Row>(sql`
    SELECT status, retry_count, lease_until FROM jobs.job_queue WHERE job_id = ${jobId}`);
  return row ?? assert.fail(`no job ${jobId}`);
}

test('a locked row does not prevent the renewal of other leases, and its job keeps running', async (t) => {
  const goOn = Promise.withResolvers<void>();
  const started: AbortSignal[] = [];
  const { enqueue } = await startQueueWorker(
    database,
    t,
    async (_job, { signal }) => {
      started.push(signal);
      await goOn.promise;
    },
    { leaseMs: 6000 },
  );
  const [locked, other] = [await enqueue(), await enqueue()];
  await eventually(() => assert.equal(started.length, 2));
  await database.db.transaction(async (tx) => {
    await tx.query(sql`SELECT job_id FROM jobs.job_queue WHERE job_id = ${locked.jobId} FOR UPDATE`);
    const before = { locked: await find(locked.jobId), other: await find(other.jobId) };
    await eventually(async () => {
      // The server ends transactions that are idle for too long.
      await tx.query(sql`SELECT 1`);
      const { lease_until } = await find(other.jobId);
      assert.ok(Number(lease_until) > Number(before.other.lease_until));
    });
    assert.deepEqual((await find(locked.jobId)).lease_until, before.locked.lease_until);
    assert.ok(started.every((signal) => !signal.aborted));
  });
  goOn.resolve();
  for (const { jobId } of [locked, other])
    await eventually(async () => {
      const { status, retry_count } = await find(jobId);
      assert.deepEqual([status, retry_count], ['completed', 0]);
    });
});
