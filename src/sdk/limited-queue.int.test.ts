import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Pool } from 'pg';
import { createTestDatabase, type TestDatabase } from '../../tests/support/database.ts';
import { eventually } from '../../tests/support/eventually.ts';
import { openServicePool } from '../../tests/support/guarded-steps.ts';
import { sql } from '../platform/postgres/sql.ts';
import { jobs, type JobEvent } from './index.ts';

let database: TestDatabase;
let pool: Pool;
before(async () => {
  database = await createTestDatabase();
  pool = openServicePool(database.url, { max: 6 });
});
after(async () => {
  await pool.end();
  await database.drop();
});

const limits = [
  ['a global concurrency', sql`max_running = 2`],
  ['a rate limit', sql`rate_count = 100, rate_window_ms = 1000`],
  [
    'a throttle',
    sql`throttle = '{"rate": 100, "peak": 1e9, "cut_at_ms": 0, "window_at_ms": 0, "window_taken": 0}'`,
  ],
] as const;

for (const [index, [limit, change]] of limits.entries())
  test(`workers run the jobs of a queue with ${limit}, even those that were added before it`, async (t) => {
    const queue = `limited-${index}`;
    const events: JobEvent[] = [];
    const worker = await jobs.work({
      pool,
      queue,
      handler: () => 'done',
      pollMs: 50,
      onEvent: (event) => void events.push(event),
    });
    t.after(() => worker.stop({ withinMs: 1000 }));
    const runs = async (count: number): Promise<void> => {
      const added = await jobs.enqueueMany(
        pool,
        queue,
        Array.from({ length: count }, () => ({ payload: {} })),
      );
      const ids = added.map(({ jobId }) => jobId);
      await eventually(async () => {
        const rows = await database.db.query<{ status: string }>(sql`
          SELECT status FROM jobs.job_queue WHERE job_id = ANY(${ids}::uuid[]) AND status <> 'completed'`);
        assert.deepEqual(rows, []);
      });
    };
    await runs(1);
    await database.db.query(sql`INSERT INTO jobs.queues (queue) VALUES (${queue})`);
    await database.db.query(sql`UPDATE jobs.queues SET ${change} WHERE queue = ${queue}`);
    await runs(5);
    assert.deepEqual(
      events.filter(({ type }) => type === 'trouble'),
      [],
    );
  });
