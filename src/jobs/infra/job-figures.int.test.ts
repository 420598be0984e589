import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { Sql, sql } from '../../platform/postgres/sql.ts';
import { createMetrics, type Metrics } from '../../platform/telemetry/metrics.ts';
import { createJobFigures, type JobFiguresOptions } from './job-figures.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());
beforeEach(() => database.db.query(sql`TRUNCATE jobs.job_queue`));

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

/** What one round exports, as the holder of the lease. */
async function oneRound(more: Partial<JobFiguresOptions> = {}): Promise<Readonly<Record<string, number>>> {
  const metrics = createMetrics();
  const figures = createJobFigures(metrics, { db: database.db, queues: ['idle'], ...more });
  assert.deepEqual(await samples(metrics), {}, 'who holds no lease exports nothing');
  const held = new AbortController();
  const exporting = figures.export(held.signal);
  const exported = await eventually(async () => {
    const found = await samples(metrics);
    assert.ok('jobs_lag_seconds{queue="idle"}' in found);
    return found;
  });
  held.abort();
  await exporting;
  assert.deepEqual(await samples(metrics), {}, 'who has lost it exports nothing any more');
  return exported;
}

const depth = (queue: string, status: string): string => `jobs_depth{queue="${queue}",status="${status}"}`;
const lag = (queue: string): string => `jobs_lag_seconds{queue="${queue}"}`;

test('a queue that is configured is there with zeros', async () => {
  assert.deepEqual(await oneRound(), {
    [depth('idle', 'pending')]: 0,
    [depth('idle', 'failed')]: 0,
    [depth('idle', 'running')]: 0,
    [depth('idle', 'dead_letter')]: 0,
    [lag('idle')]: 0,
  });
});

test('jobs are counted by queue and status; dead letters only until somebody has dealt with them', async () => {
  await add({ status: 'pending', count: 3 });
  await add({ status: 'failed', count: 2, seconds: -60 });
  await add({ status: 'running', count: 4 });
  await add({ status: 'completed', count: 9 });
  await add({ status: 'dead_letter', count: 5 });
  await add({ status: 'dead_letter', count: 6, resolution: 'discarded' });
  await add({ status: 'dead_letter', count: 7, resolution: 'cancelled' });
  await add({ queue: 'only dead', status: 'dead_letter', count: 1 });
  await add({ queue: 'only resolved', status: 'dead_letter', count: 1, resolution: 'discarded' });
  await add({ queue: 'only done', status: 'completed', count: 1 });
  const figures = await oneRound();
  const counts = ['pending', 'failed', 'running', 'dead_letter'].map(
    (status) => figures[depth('mail', status)],
  );
  assert.deepEqual(counts, [3, 2, 4, 5]);
  assert.equal(figures[depth('only dead', 'dead_letter')], 1);
  assert.ok(!(depth('only resolved', 'dead_letter') in figures));
  assert.ok(!(depth('only done', 'pending') in figures));
  assert.ok(!(depth('mail', 'completed') in figures));
});

test('the lag is the wait of what has been due for longest, not of what is for later, nor of who was let ahead', async () => {
  await add({ queue: 'late', status: 'pending', count: 1, seconds: 100 });
  await add({ queue: 'late', status: 'pending', count: 5, seconds: 1, priority: 100 });
  await add({ queue: 'retry', status: 'failed', count: 1, seconds: 50 });
  await add({ queue: 'later', status: 'pending', count: 1, seconds: -3600 });
  await add({ queue: 'later', status: 'dead_letter', count: 1, seconds: 9000 });
  const figures = await oneRound();
  for (const [queue, seconds] of [
    ['late', 100],
    ['retry', 50],
  ] as const) {
    const found = figures[lag(queue)] ?? Number.NaN;
    assert.ok(found >= seconds && found < seconds + 40, `${queue}: ${found}`);
  }
  assert.equal(figures[lag('later')], 0);
});

test('a job that names a time before its making waits from its making on', async () => {
  for (const runAt of ['1970-01-01T00:00:00Z', '-infinity'])
    await database.db.query(sql`SELECT jobs.enqueue('old', '{}', p_run_at => ${runAt}::timestamptz)`);
  const figures = await oneRound();
  assert.equal(figures[depth('old', 'pending')], 2);
  const seconds = figures[lag('old')] ?? Number.NaN;
  assert.ok(seconds >= 0 && seconds < 40, String(seconds));
});

test('beyond a thousand queues the others are one, but those that are configured keep their names', async () => {
  await database.db.query(sql`
    INSERT INTO jobs.job_queue (queue, payload) SELECT 'q' || n, '{}' FROM generate_series(1, 1100) AS n`);
  const figures = await oneRound({ queues: ['idle', 'zebra'] });
  const queues = Object.keys(figures).filter((name) => name.startsWith('jobs_lag_seconds'));
  assert.equal(queues.length, 1001);
  assert.equal(figures[depth('other', 'pending')], 1100 - 998);
  assert.equal(figures[depth('zebra', 'pending')], 0);
});

test('a round that fails ends the export, and leaves no old figure behind', async () => {
  const metrics = createMetrics();
  const db: Database = {
    ...database.db,
    transaction: () => Promise.reject(new Error('the database is away')),
  };
  await assert.rejects(
    createJobFigures(metrics, { db, queues: ['idle'] }).export(new AbortController().signal),
    /away/,
  );
  assert.deepEqual(await samples(metrics), {});
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
    const figures = await oneRound({ db: explaining(plans), countedRows: 1000 });
    assert.equal((figures[depth('a', 'pending')] ?? 0) + (figures[depth('a', 'failed')] ?? 0), 1000);
    assert.equal(figures[depth('b', 'dead_letter')], 1000);
    assert.equal(figures[depth('mail', 'running')], 100);
    assert.ok(plans.length >= 4);
    for (const plan of plans) {
      assert.doesNotMatch(plan, /(Seq|Bitmap Heap) Scan on job_queue/);
      for (const [, rows] of plan.matchAll(/Index.*Scan.* rows=(\d+) loops=\d+\)/g))
        assert.ok(Number(rows) <= 1000, plan);
      // Nor is what belongs to other queues, or was dealt with, gone through.
      assert.doesNotMatch(plan, /Rows Removed by Filter: \d{2}/);
    }
  });
