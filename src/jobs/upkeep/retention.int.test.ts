import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { Sql, sql } from '../../platform/postgres/sql.ts';
import { runTasks } from '../../platform/work/retention-tasks.ts';
import { jobRetention, type JobRetentionOptions } from './retention.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());
beforeEach(() =>
  database.db.query(sql`TRUNCATE jobs.job_queue, jobs.job_attempts, jobs.job_actions, jobs.cron_ticks`),
);

const dayMs = 86_400_000;
const options: JobRetentionOptions = {
  retentionMs: 7 * dayMs,
  deadRetentionMs: 90 * dayMs,
  queues: [{ name: 'short', retentionMs: dayMs, deadRetentionMs: 2 * dayMs }],
};

const deleteExpired = (
  more: Partial<JobRetentionOptions> = {},
  db: Queryable = database.db,
  signal = new AbortController().signal,
) => runTasks(jobRetention(db, { ...options, ...more }), signal);

type Row = Readonly<{
  queue?: string;
  status: string;
  resolution?: string;
  /** Since it was made, and since it ended. */
  days: number;
  endedDays?: number | null;
  count?: number;
}>;

/** Jobs of this age, each with an attempt and an action; their id contains their creation time. */
async function add({ queue = 'usual', status, days, count = 1, ...more }: Row): Promise<void> {
  const endedDays = more.endedDays === undefined ? days : more.endedDays;
  await database.db.query(sql`
    WITH added AS (
      INSERT INTO jobs.job_queue (job_id, queue, payload, status, resolution, created_at, completed_at)
      SELECT overlay(platform.new_id()::text PLACING
                     regexp_replace(lpad(to_hex((date_part('epoch', at) * 1000)::bigint), 12, '0'), '(.{8})', '\\1-')
                     FROM 1 FOR 13)::uuid,
             ${queue}, '{}', ${status}, ${more.resolution ?? null}, at,
             now() - ${endedDays}::float8 * interval '1 day'
      FROM generate_series(1, ${count}::int) AS n, LATERAL (SELECT now() - ${days} * interval '1 day' AS at) AS made
      RETURNING job_id
    ), attempts AS (
      INSERT INTO jobs.job_attempts (job_id, retry_count, status_to, error, lease_epoch)
      SELECT job_id, 1, 'failed', 'it broke', 1 FROM added
    )
    INSERT INTO jobs.job_actions (job_id, action, status_from, status_to, actor)
    SELECT job_id, 'requeue', 'dead_letter', 'pending', 'somebody' FROM added`);
}

async function left(): Promise<readonly string[]> {
  const rows = await database.db.query<{ text: string }>(sql`
    SELECT queue || ' ' || status || COALESCE(' ' || resolution, '') AS text FROM jobs.job_queue ORDER BY 1`);
  return rows.map(({ text }) => text);
}

async function countHistory(): Promise<readonly number[]> {
  const [row] = await database.db.query<{ attempts: number; actions: number }>(sql`
    SELECT (SELECT count(*)::int FROM jobs.job_attempts) AS attempts,
           (SELECT count(*)::int FROM jobs.job_actions) AS actions`);
  return [row?.attempts ?? -1, row?.actions ?? -1];
}

test('ended jobs stay for the retention of their queue, and are deleted with their history', async () => {
  await add({ status: 'completed', days: 8 });
  await add({ status: 'completed', days: 6 });
  await add({ status: 'completed', days: 30, endedDays: 6 });
  await add({ status: 'dead_letter', days: 91 });
  await add({ status: 'dead_letter', days: 91, resolution: 'discarded' });
  await add({ status: 'dead_letter', days: 89 });
  await add({ status: 'dead_letter', days: 89, resolution: 'cancelled' });
  await add({ queue: 'short', status: 'completed', days: 1.5 });
  await add({ queue: 'short', status: 'dead_letter', days: 1.5 });
  await add({ queue: 'short', status: 'dead_letter', days: 3 });
  assert.deepEqual(await deleteExpired(), {
    completed: 2,
    resolved: 1,
    unresolved: 2,
    orphans: 0,
    queues: 0,
  });
  assert.deepEqual(await left(), [
    'short dead_letter',
    'usual completed',
    'usual completed',
    'usual dead_letter',
    'usual dead_letter cancelled',
  ]);
  assert.deepEqual(await countHistory(), [5, 5]);
});

test('jobs that have not ended stay, however old they are', async () => {
  for (const status of ['pending', 'running', 'failed']) await add({ status, days: 4000, endedDays: null });
  assert.equal((await deleteExpired()).completed, 0);
  assert.equal((await left()).length, 3);
});

test('a job that was ended with SQL, without completed_at, expires by its creation time', async () => {
  await add({ status: 'completed', days: 8, endedDays: null });
  await add({ status: 'completed', days: 6, endedDays: null });
  assert.equal((await deleteExpired()).completed, 1);
});

test('rows younger than the retention are not read, and a retention longer than all time reads none', async () => {
  await add({ status: 'completed', days: 4, count: 100 });
  for (const days of [7, 36_500]) {
    let looks = 0;
    const counting: Queryable = {
      async query(statement) {
        if (statement.text.includes('AS keep_ms')) looks += 1;
        return database.db.query(statement);
      },
    };
    const keep = { retentionMs: days * dayMs, deadRetentionMs: days * dayMs, queues: [], batchSize: 10 };
    assert.equal((await deleteExpired(keep, counting)).completed, 0);
    assert.equal(looks, 2, 'one look at the old ones, one at those with an id of their own');
  }
});

test('an id chosen by a caller that contains a future time does not keep its job for ever', async () => {
  await database.db.query(sql`
    INSERT INTO jobs.job_queue (job_id, queue, payload, status, completed_at)
    VALUES ('f47ac10b-58cc-4372-a567-0e02b2c3d479', 'usual', '{}', 'completed', now() - interval '8 days'),
           ('ffffffff-ffff-4fff-bfff-ffffffffffff', 'usual', '{}', 'completed', now() - interval '1 day')`);
  assert.equal((await deleteExpired()).completed, 1);
  assert.equal((await left()).length, 1);
});

test('one round goes through many batches, also where rows stay in between', async () => {
  await add({ status: 'completed', days: 20, count: 25 });
  await add({ status: 'pending', days: 15, endedDays: null, count: 25 });
  await add({ status: 'completed', days: 10, count: 25 });
  const deleted = await deleteExpired({ batchSize: 10 });
  assert.deepEqual([deleted.completed, (await left()).length], [50, 25]);
});

test('a round ends at the signal', async () => {
  await add({ status: 'completed', days: 20, count: 30 });
  const lease = new AbortController();
  const watched: Queryable = {
    async query(statement) {
      lease.abort();
      return database.db.query(statement);
    },
  };
  const deleted = await deleteExpired({ batchSize: 10 }, watched, lease.signal);
  assert.equal(deleted.completed, 10);
});

test('a dead letter that is requeued during its deletion stays, with its history', async () => {
  await add({ status: 'dead_letter', days: 100 });
  let looks = 0;
  const requeuing: Queryable = {
    async query(statement) {
      looks += 1;
      if (looks === 2)
        await database.db.query(sql`UPDATE jobs.job_queue SET status = 'pending', retry_count = 0`);
      return database.db.query(statement);
    },
  };
  assert.equal((await deleteExpired({}, requeuing)).unresolved, 0);
  assert.deepEqual([await left(), await countHistory()], [['usual pending'], [1, 1]]);
});

test('only the history of deleted jobs is deleted', async () => {
  await add({ status: 'completed', days: 1, count: 30 });
  await add({ status: 'pending', days: 1, endedDays: null, count: 5 });
  await database.db.query(sql`DELETE FROM jobs.job_queue WHERE status = 'completed'`);
  assert.equal((await deleteExpired({ batchSize: 7 })).orphans, 60);
  assert.deepEqual(await countHistory(), [5, 5]);
});

test('the row of a queue is deleted when it has had the default settings for a day', async () => {
  await database.db.query(sql`
    INSERT INTO jobs.queues (queue, updated_at, is_configured, paused, throttle, max_running, timeout_ms)
    SELECT queue, now() - hours * interval '1 hour', COALESCE(is_configured, false), COALESCE(paused, false), throttle,
           max_running, COALESCE(timeout_ms, 60000)
    FROM jsonb_to_recordset(${JSON.stringify([
      { queue: 'resumed long ago', hours: 25 },
      { queue: 'resumed just now', hours: 1 },
      { queue: 'configured', hours: 25, is_configured: true },
      { queue: 'paused', hours: 25, paused: true },
      { queue: 'slowed', hours: 25, throttle: {} },
      { queue: 'limited by hand', hours: 25, max_running: 1 },
      { queue: 'changed by hand', hours: 25, timeout_ms: 1 },
    ])}::jsonb) AS added (queue TEXT, hours INT, is_configured BOOLEAN, paused BOOLEAN, throttle JSONB,
                          max_running INT, timeout_ms INT)`);
  assert.equal((await deleteExpired()).queues, 1);
  const rows = await database.db.query<{ queue: string }>(sql`SELECT queue FROM jobs.queues ORDER BY queue`);
  assert.deepEqual(
    rows.map(({ queue }) => queue),
    ['changed by hand', 'configured', 'limited by hand', 'paused', 'resumed just now', 'slowed'],
  );
});

test('no table is scanned as a whole, however many jobs it has', async () => {
  await add({ status: 'completed', days: 1, count: 20_000 });
  await add({ status: 'completed', days: 20, count: 300 });
  await database.db.query(sql`ANALYZE jobs.job_queue, jobs.job_attempts, jobs.job_actions`);
  const plans: string[] = [];
  const explaining: Queryable = {
    async query(statement) {
      const rows = await database.db.query<{ 'QUERY PLAN': string }>(
        sql`EXPLAIN ${new Sql(statement.strings, statement.values)}`,
      );
      plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'));
      return database.db.query(statement);
    },
  };
  assert.equal((await deleteExpired({ batchSize: 200 }, explaining)).completed, 300);
  for (const plan of plans) assert.doesNotMatch(plan, /Seq Scan on job_(queue|attempts|actions)/);
});
