import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { startJobsSystem, type JobsSystem } from '../support/jobs-system.ts';

/** Two replicas on one database: what the clock makes them do, what they forget, and what they count. */

const cron = {
  often: { schedule: '* * * * *', queue: 'mail', payload: { article_id: 'a-1', note: null }, priority: 5 },
  yearly: { schedule: '0 0 1 1 *', queue: 'mail' },
};

describe('Schedules, retention and figures', () => {
  let database: TestDatabase;
  const replicas: JobsSystem[] = [];
  before(async () => void (database = await createTestDatabase()));
  after(async () => {
    for (const replica of replicas) await replica.drop();
    await database.drop();
  });

  const ticksOf = (name: string): Promise<readonly { tick_at: Date; job_id: string | null }[]> =>
    database.db.query(sql`SELECT tick_at, job_id FROM jobs.cron_ticks WHERE name = ${name} ORDER BY tick_at`);

  /** `name{labels}` and its value, of one replica. */
  const figuresOf = async ({ system }: JobsSystem): Promise<ReadonlyMap<string, number>> => {
    const { text } = await system.api.get('/metrics');
    const lines = text.split('\n').filter((line) => line.startsWith('jobs_'));
    return new Map(
      lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
    );
  };

  test('a schedule that is new begins with its next time', async () => {
    const first = await startJobsSystem({ database, cron });
    for (const name of Object.keys(cron))
      await eventually(async () => assert.ok((await ticksOf(name)).length > 0, name));
    await first.drop();
    const [begin] = await ticksOf('often');
    assert.equal(begin?.job_id, null);
    assert.equal((await ticksOf('yearly')).length, 1);
  });

  test('after days without anybody, two replicas that start at once add one job for the latest time', async () => {
    await database.db.query(sql`DELETE FROM jobs.job_queue`);
    await database.db.query(sql`DELETE FROM jobs.cron_ticks WHERE job_id IS NOT NULL`);
    await database.db.query(sql`
      UPDATE jobs.cron_ticks SET tick_at = tick_at - interval '3 days' WHERE name = 'often'`);
    // Old enough to go, and young enough to stay.
    await database.db.query(sql`
      INSERT INTO jobs.job_queue (job_id, queue, payload, status, completed_at, created_at)
      VALUES ('00000000-0001-7000-8000-000000000000', 'mail', '{}', 'completed', now() - interval '8 days', now()),
             ('00000000-0002-7000-8000-000000000000', 'mail', '{}', 'dead_letter', now() - interval '8 days', now())`);
    replicas.push(...(await Promise.all([1, 2].map(() => startJobsSystem({ database, cron })))));
    await eventually(async () => assert.notEqual((await ticksOf('often')).at(-1)?.job_id, null));
    const jobs = await database.db.query<{ job_id: string; payload: unknown; priority: number }>(sql`
      SELECT job_id, payload, priority FROM jobs.job_queue WHERE status = 'pending'`);
    assert.deepEqual(
      jobs.map(({ payload, priority }) => ({ payload, priority })),
      [{ payload: { article_id: 'a-1', note: null }, priority: 5 }],
    );
    const fired = (await ticksOf('often')).filter(({ job_id: jobId }) => jobId !== null);
    assert.ok(fired.every(({ job_id: jobId }) => jobId === jobs[0]?.job_id));
    assert.ok(Date.now() - (fired[0]?.tick_at.getTime() ?? 0) < 180_000);
  });

  test('the replica that added it has counted it, and no other', async () => {
    await eventually(async () => {
      const counts = await Promise.all(replicas.map(figuresOf));
      const added = counts.map((figures) => figures.get('jobs_enqueued_total{queue="mail"}') ?? 0);
      assert.deepEqual([Math.min(...added), Math.max(...added)], [0, 1]);
    });
  });

  test('what waits and what is dead is told by one replica', async () => {
    await eventually(async () => {
      const all = await Promise.all(replicas.map(figuresOf));
      const telling = all.filter((figures) => figures.has('jobs_lag_seconds{queue="mail"}'));
      assert.equal(telling.length, 1);
      assert.equal(telling[0]?.get('jobs_depth{queue="mail",status="pending"}'), 1);
      assert.equal(telling[0]?.get('jobs_depth{queue="mail",status="dead_letter"}'), 1);
    });
  });

  test('a completed job goes when its keep is over, and a dead letter stays for longer', async () => {
    await eventually(async () => {
      const rows = await database.db.query<{ status: string }>(sql`
        SELECT status FROM jobs.job_queue WHERE status IN ('completed', 'dead_letter')`);
      assert.deepEqual(rows, [{ status: 'dead_letter' }]);
    });
  });
});
