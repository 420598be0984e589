import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Pool } from 'pg';
import { testAct } from '../support/acts.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { pauseQueue, resumeQueue, type PauseDeps } from '../../src/jobs/decide/pause-queue.ts';
import { sleep } from '../../src/kernel/clock.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { jobs } from '../../src/sdk/index.ts';

let database: TestDatabase;
let pool: Pool;
let deps: PauseDeps;
before(async () => {
  database = await createTestDatabase();
  pool = new Pool({ connectionString: database.url, max: 6 });
  deps = { db: database.db, log: { info: () => {} }, queueNames: async () => [] };
});
after(async () => {
  await pool.end();
  await database.drop();
});

test('after a pause was answered no job starts that a worker has claimed ahead, and those are given back at no cost', async (t) => {
  const queue = 'ahead';
  const quick = 300;
  let begun = 0;
  const worker = await jobs.work({
    pool,
    queue,
    concurrency: 2,
    pollMs: 50,
    // Quick at first, so that hundreds are claimed ahead; then slow, so that they wait for long.
    handler: () => {
      begun += 1;
      return begun > quick ? sleep(30) : undefined;
    },
    onEvent: (event) => assert.notEqual(event.type, 'trouble'),
  });
  t.after(() => worker.stop({ withinMs: 5000 }));
  await jobs.enqueueMany(
    pool,
    queue,
    Array.from({ length: 1000 }, () => ({ payload: {} })),
  );
  const asked = { queue, by: 'ops', reason: null, act: testAct('jobs:queues:pause') };
  await eventually(() => assert.ok(begun > quick + 5), { everyMs: 5 });
  const [claimed] = await database.db.query<{ running: number }>(sql`
    SELECT count(*)::int AS running FROM jobs.job_queue WHERE queue = ${queue} AND status = 'running'`);
  assert.ok((claimed?.running ?? 0) > 100, `${claimed?.running} are claimed ahead`);

  await pauseQueue(deps, { ...asked, isNew: false });
  const atAnswer = begun;
  await eventually(async () => {
    const rows = await database.db.query<{ status: string; spent: number }>(sql`
      SELECT status, max(retry_count + deferrals) AS spent FROM jobs.job_queue WHERE queue = ${queue}
      GROUP BY status ORDER BY status`);
    assert.deepEqual(rows, [
      { status: 'completed', spent: 0 },
      { status: 'pending', spent: 0 },
    ]);
  });
  assert.equal(begun, atAnswer);
  assert.ok(begun < 1000);

  await resumeQueue(deps, asked);
  await eventually(() => assert.equal(begun, 1000));
});
