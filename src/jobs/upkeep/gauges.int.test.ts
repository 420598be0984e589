import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { Sql, sql } from '../../platform/postgres/sql.ts';
import { createMetrics, type Metrics } from '../../platform/telemetry/metrics.ts';
import { clearGauges } from '../../platform/work/gauges.ts';
import { jobGauges, type JobGaugesOptions } from './gauges.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());
beforeEach(() => database.db.query(sql`TRUNCATE jobs.job_queue, jobs.queues`));

type Rows = Readonly<{
  queue?: string;
  status: string;
  count: number;
  /** How long ago it was due. */
  seconds?: number;
  priority?: number;
  resolution?: string;
}>;

async function add({
  queue = 'mail',
  status,
  count,
  seconds = 0,
  priority = 0,
  ...more
}: Rows): Promise<void> {
  await database.db.query(sql`
    INSERT INTO jobs.job_queue
      (queue, payload, status, created_at, run_at, sort_at, priority, resolution, completed_at)
    SELECT ${queue}, '{}', ${status}, LEAST(at, now()), at, at - ${priority} * interval '1 minute', ${priority},
           ${more.resolution ?? null}, CASE WHEN ${status} IN ('completed', 'dead_letter') THEN now() END
    FROM generate_series(1, ${count}::int), LATERAL (SELECT now() - ${seconds} * interval '1 second' AS at) AS due`);
}

async function samples(metrics: Metrics): Promise<Readonly<Record<string, number>>> {
  const lines = (await metrics.render()).split('\n').filter((line) => line.startsWith('jobs_'));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]),
  );
}

/** The series of one measurement. */
async function oneRound(more: Partial<JobGaugesOptions> = {}): Promise<Readonly<Record<string, number>>> {
  const metrics = createMetrics();
  const gauges = jobGauges(metrics, { db: database.db, queues: ['idle'], ...more });
  const set = await gauges.measure();
  clearGauges(gauges);
  set();
  return samples(metrics);
}

const depth = (queue: string, status: string): string => `jobs_depth{queue="${queue}",status="${status}"}`;
const lag = (queue: string): string => `jobs_lag_seconds{queue="${queue}"}`;

test('a configured queue is exported even when it is empty', async () => {
  assert.deepEqual(await oneRound(), {
    [depth('idle', 'pending')]: 0,
    [depth('idle', 'failed')]: 0,
    [depth('idle', 'running')]: 0,
    [depth('idle', 'dead_letter')]: 0,
    [lag('idle')]: 0,
  });
});

test('jobs are counted by queue and status, dead letters only until they are resolved', async () => {
  await add({ status: 'pending', count: 3 });
  await add({ status: 'failed', count: 2, seconds: -60 });
  await add({ status: 'running', count: 4 });
  await add({ status: 'completed', count: 9 });
  await add({ status: 'dead_letter', count: 5 });
  await add({ status: 'dead_letter', count: 6, resolution: 'discarded' });
  await add({ status: 'dead_letter', count: 7, resolution: 'cancelled' });
  await add({ queue: 'only-dead', status: 'dead_letter', count: 1 });
  await add({ queue: 'only-resolved', status: 'dead_letter', count: 1, resolution: 'discarded' });
  await add({ queue: 'only-done', status: 'completed', count: 1 });
  const found = await oneRound();
  const counts = ['pending', 'failed', 'running', 'dead_letter'].map(
    (status) => found[depth('mail', status)],
  );
  assert.deepEqual(counts, [3, 2, 4, 5]);
  assert.equal(found[depth('only-dead', 'dead_letter')], 1);
  assert.ok(!(depth('only-resolved', 'dead_letter') in found));
  assert.ok(!(depth('only-done', 'pending') in found));
  assert.ok(!(depth('mail', 'completed') in found));
});

test('the lag is the wait of the job that has been due for longest, whatever its priority', async () => {
  await add({ queue: 'late', status: 'pending', count: 1, seconds: 100 });
  await add({ queue: 'late', status: 'pending', count: 5, seconds: 1, priority: 100 });
  await add({ queue: 'retry', status: 'failed', count: 1, seconds: 50 });
  await add({ queue: 'later', status: 'pending', count: 1, seconds: -3600 });
  await add({ queue: 'later', status: 'dead_letter', count: 1, seconds: 9000 });
  const found = await oneRound();
  for (const [queue, seconds] of [
    ['late', 100],
    ['retry', 50],
  ] as const) {
    const exported = found[lag(queue)] ?? Number.NaN;
    assert.ok(exported >= seconds && exported < seconds + 40, `${queue}: ${exported}`);
    const since = found[`jobs_oldest_due_timestamp_seconds{queue="${queue}"}`] ?? 0;
    assert.ok(Math.abs(Date.now() / 1000 - seconds - since) < 40, `${queue}: ${since}`);
  }
  assert.equal(found[lag('later')], 0);
});

test('a paused queue has no lag, and its jobs are counted; it has a lag again when it is resumed', async () => {
  const pause = (isPaused: boolean): Promise<unknown> =>
    database.db.query(sql`
      INSERT INTO jobs.queues (queue, paused) VALUES ('held', ${isPaused})
      ON CONFLICT (queue) DO UPDATE SET paused = EXCLUDED.paused`);
  await add({ queue: 'held', status: 'pending', count: 3, seconds: 900 });
  await pause(true);
  const paused = await oneRound({ queues: ['held'] });
  assert.equal(paused[lag('held')], 0);
  assert.ok(!('jobs_oldest_due_timestamp_seconds{queue="held"}' in paused));
  assert.equal(paused[depth('held', 'pending')], 3);
  await pause(false);
  const resumed = (await oneRound())[lag('held')] ?? Number.NaN;
  assert.ok(resumed >= 900 && resumed < 940, String(resumed));
});

test('a job with a run_at before its creation waits from its creation on', async () => {
  for (const runAt of ['1970-01-01T00:00:00Z', '-infinity'])
    await database.db.query(sql`SELECT jobs.enqueue('old', '{}', p_run_at => ${runAt}::timestamptz)`);
  const found = await oneRound();
  assert.equal(found[depth('old', 'pending')], 2);
  const seconds = found[lag('old')] ?? Number.NaN;
  assert.ok(seconds >= 0 && seconds < 40, String(seconds));
});

test('beyond 200 queues the others share a label, but configured queues keep their names', async () => {
  await database.db.query(sql`
    INSERT INTO jobs.job_queue (queue, payload) SELECT 'q' || n, '{}' FROM generate_series(1, 1100) AS n`);
  const found = await oneRound({ queues: ['idle', 'zebra'] });
  const queues = Object.keys(found).filter((name) => name.startsWith('jobs_lag_seconds'));
  assert.equal(queues.length, 201);
  assert.equal(found[depth('other', 'pending')], 1100 - 198);
  assert.equal(found[depth('zebra', 'pending')], 0);
});

/** Whatever runs in a transaction is explained first. */
function explaining(plans: string[]): Database {
  const explain =
    (tx: Queryable): Queryable['query'] =>
    async (statement) => {
      const rows = await tx.query<{ 'QUERY PLAN': string }>(
        sql`EXPLAIN (ANALYZE) ${new Sql(statement.strings, statement.values)}`,
      );
      plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'));
      return tx.query(statement);
    };
  return {
    ...database.db,
    transaction: (work, options) => database.db.transaction((tx) => work({ query: explain(tx) }), options),
  };
}

for (const statistics of ['up to date', 'older than the jobs'] as const)
  test(`with many jobs no table is read as a whole, and counts end at their bound: statistics ${statistics}`, async () => {
    await add({ status: 'completed', count: 30_000 });
    if (statistics === 'older than the jobs') await database.db.query(sql`ANALYZE jobs.job_queue`);
    for (const queue of ['a', 'b']) {
      await add({ queue, status: 'pending', count: 8000 });
      await add({ queue, status: 'failed', count: 8000 });
      await add({ queue, status: 'dead_letter', count: 4000 });
      await add({ queue, status: 'dead_letter', count: 4000, resolution: 'discarded' });
    }
    await add({ status: 'running', count: 100 });
    if (statistics === 'up to date') await database.db.query(sql`ANALYZE jobs.job_queue`);
    const plans: string[] = [];
    const found = await oneRound({ db: explaining(plans), countedRows: 1000 });
    assert.equal((found[depth('a', 'pending')] ?? 0) + (found[depth('a', 'failed')] ?? 0), 1000);
    assert.equal(found[depth('b', 'dead_letter')], 1000);
    assert.equal(found[depth('mail', 'running')], 100);
    assert.ok(plans.length >= 4);
    for (const plan of plans) {
      assert.doesNotMatch(plan, /(Seq|Bitmap Heap) Scan on job_queue/);
      for (const [, rows] of plan.matchAll(/Index.*Scan.* rows=(\d+) loops=\d+\)/g))
        assert.ok(Number(rows) <= 1000, plan);
      // Nor is what belongs to other queues, or was dealt with, gone through.
      assert.doesNotMatch(plan, /Rows Removed by Filter: \d{2}/);
    }
  });
