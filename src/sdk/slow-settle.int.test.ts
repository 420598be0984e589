import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Pool } from 'pg';
import { createTestDatabase, type TestDatabase } from '../../tests/support/database.ts';
import { eventually } from '../../tests/support/eventually.ts';
import { startQueueWorker } from '../../tests/support/queue-worker.ts';
import { sql } from '../platform/postgres/sql.ts';
import { jobs } from './jobs.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

async function completed(queue: string): Promise<number> {
  const [row] = await database.db.query<{ count: number }>(sql`
    SELECT count(*)::int AS count FROM jobs.job_queue WHERE queue = ${queue} AND status = 'completed'`);
  return row?.count ?? 0;
}

test('a job whose settle exceeds the statement timeout does not keep others from being settled', async (t) => {
  await database.db.query(sql`
    CREATE FUNCTION public.take_long() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM pg_sleep(2);
      RETURN NEW;
    END $$`);
  await database.db.query(sql`
    CREATE TRIGGER take_long BEFORE UPDATE ON jobs.job_queue
      FOR EACH ROW WHEN (NEW.status = 'completed' AND NEW.payload ? 'slow') EXECUTE FUNCTION public.take_long()`);
  const pool = new Pool({ connectionString: database.url, max: 6, statement_timeout: 500 });
  t.after(() => pool.end());
  await jobs.enqueue(pool, 'mail', { slow: true });
  await jobs.enqueueMany(
    pool,
    'mail',
    Array.from({ length: 50 }, (_, i) => ({ payload: { i } })),
  );
  let told = 0;
  const worker = await jobs.work({
    pool,
    leaseMs: 1500,
    queue: 'mail',
    handler: () => {},
    concurrency: 60,
    onEvent: (event) => void (told += event.type === 'finished' && event.outcome === 'completed' ? 1 : 0),
  });
  t.after(() => worker.stop({ withinMs: 500 }));
  await eventually(async () => assert.equal(await completed('mail'), 50), { withinMs: 60_000 });
  await eventually(() => assert.equal(told, 50), { withinMs: 60_000 });
});

test('a job whose row is locked does not keep later jobs from being settled', async (t) => {
  const { promise: ends, resolve: end } = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const { enqueue, queue } = await startQueueWorker(database, t, async ({ payload }) => {
    if (payload !== 'locked') return;
    begun.resolve();
    await ends;
  });
  const { jobId } = await enqueue('locked');
  await begun.promise;
  await database.db.transaction(async (tx) => {
    await tx.query(sql`SELECT 1 FROM jobs.job_queue WHERE job_id = ${jobId} FOR UPDATE`);
    end();
    await eventually(async () => {
      await tx.query(sql`SELECT 'still here'`);
      await enqueue('free');
      assert.ok((await completed(queue)) >= 3);
    });
  });
  await eventually(async () => {
    const [row] = await database.db.query<{ status: string }>(
      sql`SELECT status FROM jobs.job_queue WHERE job_id = ${jobId}`,
    );
    assert.equal(row?.status, 'completed');
  });
});
