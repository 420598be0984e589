import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Pool } from 'pg';
import { createTestDatabase, type TestDatabase } from '../../tests/support/database.ts';
import { createTestJobStore, fixedQueues } from '../../tests/support/job-store.ts';
import { createTestWorker } from '../../tests/support/worker.ts';
import { sql } from '../platform/postgres/sql.ts';
import { createUserDatabase } from './user-database.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

for (const keepCompleted of [true, false])
  test(`of jobs that are settled together, one whose lease was lost is stale and the others are completed, on a service's pool, ${keepCompleted ? 'kept' : 'removed'}`, async (t) => {
    const pool = new Pool({ connectionString: database.url, max: 2 });
    t.after(() => pool.end());
    const db = createUserDatabase(pool, { connectWithinMs: 5000 });
    let stale = 0;
    const worker = {
      ...createTestWorker(db, 'worker'),
      onStale: (_: string, count: number) => void (stale += count),
    };
    const store = createTestJobStore(db, { worker, queues: fixedQueues({ keepCompleted }) });
    const queue = keepCompleted ? 'kept' : 'removed';
    await database.db.query(
      sql`SELECT count(*) FROM generate_series(1, 5) AS i, jobs.enqueue(${queue}, to_jsonb(i))`,
    );
    const { jobs } = await store.claim({ queue, limit: 5 });
    const taken = jobs[2]?.jobId ?? assert.fail();
    await database.db.query(sql`
      UPDATE jobs.job_queue SET lease_epoch = nextval('platform.lease_epochs') WHERE job_id = ${taken}`);
    const settled = await store.settle(
      queue,
      jobs.map((job) => ({ job, ran: null, outcome: 'completed', result: null })),
    );
    const statusOf = new Map(settled.map(({ jobId, status }) => [jobId, status]));
    assert.deepEqual(
      jobs.map(({ jobId }) => statusOf.get(jobId)),
      ['completed', 'completed', null, 'completed', 'completed'],
    );
    assert.equal(stale, 1);
  });
