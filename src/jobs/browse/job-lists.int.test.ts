import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { statuses } from '../domain/job.ts';
import { countFacets } from './count-facets.ts';
import { listJobs } from './list-jobs.ts';
import { defaultSettings } from '../domain/queue-settings.ts';
import { groupDeadJobs } from './dead-groups.ts';
import { findJob } from './find-job.ts';
import type { JobFilter } from './job-conditions.ts';
import type { Job } from './job-row.ts';
import { listQueues } from './list-queues.ts';
import { readThroughput } from './read-throughput.ts';

/** Runs every statement, and records its plan with sequential scans disabled. */
function explaining(database: TestDatabase, plans: string[]): Queryable {
  return {
    async query<Row>(statement: Sql) {
      // An EXPLAIN reads no rows.
      if (!statement.text.trimStart().startsWith('EXPLAIN'))
        await database.db.transaction(async (tx) => {
          await tx.query(sql`SET LOCAL enable_seqscan = off`);
          const plan = await tx.query<{ 'QUERY PLAN': string }>(sql`EXPLAIN ${statement}`);
          plans.push(plan.map((line) => line['QUERY PLAN']).join('\n'));
        });
      return database.db.query<Row>(statement);
    },
  };
}

/** One job a second from this time on; the ids contain the time, like those of the database. */
const begin = Date.parse('2026-02-01T00:00:00Z');
const at = (job: number): Date => new Date(begin + job * 1000);
const idAt = (time: Sql): Sql => sql`
  (lpad(to_hex((extract(epoch FROM ${time}) * 1000)::bigint), 12, '0') || '7000' || '8000'
   || lpad(to_hex(i), 12, '0'))::uuid`;

async function insertJobs(
  database: TestDatabase,
  { from, to, values }: Readonly<{ from: number; to: number; values: Sql }>,
): Promise<void> {
  const time = sql`(${at(0)}::timestamptz + i * interval '1 second')`;
  await database.db.query(sql`
    INSERT INTO jobs.job_queue
      (job_id, payload, run_at, sort_at, created_at, queue, status, dedupe_key, resolution, error_message)
    SELECT ${idAt(time)}, '{"a": 1}', ${time}, ${time}, ${time}, made.*
    FROM generate_series(${from}::int, ${to}::int) AS i CROSS JOIN LATERAL (${values}) AS made`);
  await database.db.query(sql`VACUUM ANALYZE jobs.job_queue`);
}

async function walk(db: Queryable, filter: JobFilter, pageSize: number) {
  const jobs: Job[] = [];
  let pages = 0;
  for (let after: string | null = null; ;) {
    const page = await listJobs(db, filter, { by: 'keyset', after, pageSize });
    jobs.push(...page.jobs);
    pages += 1;
    assert.equal(page.hasNext, page.next !== null);
    if (page.next === null) return { jobs, pages };
    after = page.next;
  }
}

describe('in a table with every kind of job', () => {
  let database: TestDatabase;
  before(async () => {
    database = await createTestDatabase();
    await insertJobs(database, {
      from: 1,
      to: 12_000,
      values: sql`
        SELECT 'queue-' || i % 7, status, CASE WHEN i % 5 = 0 THEN 'key-' || i END,
               CASE WHEN status = 'dead_letter' THEN (ARRAY['cancelled', 'discarded', NULL, NULL])[1 + i % 4] END,
               CASE WHEN status IN ('failed', 'dead_letter') THEN 'error ' || i % 3 END
        FROM (VALUES ((ARRAY['pending', 'running', 'completed', 'failed', 'dead_letter'])[1 + i * 31 / 8 % 5]))
          AS s (status)`,
    });
    await database.db.query(sql`
      UPDATE jobs.job_queue SET fingerprint = 'v2:' || abs(hashtext(job_id::text)) % 6
      WHERE status IN ('failed', 'dead_letter')`);
    // Back into the order of the ids.
    await database.db.query(sql`CLUSTER jobs.job_queue USING job_queue_pkey`);
    await database.db.query(sql`VACUUM ANALYZE jobs.job_queue`);
  });
  after(() => database.drop());

  const queue = 'queue-3';
  const window = { createdFrom: at(5000), createdTo: at(5500) };
  const dead = { status: 'dead_letter' } as const;
  const filters: readonly JobFilter[] = [
    {},
    { queue },
    { dedupeKey: 'key-700' },
    { queue: 'queue-0', dedupeKey: 'key-700' },
    window,
    { createdFrom: at(11_900) },
    { createdTo: at(100) },
    { queue, ...window },
    ...statuses.flatMap((status) => [
      { status },
      { status, queue },
      { status, queue, dedupeKey: 'key-115' },
      { status, ...window },
      { status, queue, ...window },
    ]),
    ...(['unresolved', 'cancelled', 'discarded', 'any'] as const).flatMap((resolution) => [
      { ...dead, resolution },
      { ...dead, resolution, queue },
      { ...dead, resolution, error: 'error 1' },
      { ...dead, resolution, queue, ...window },
      { ...dead, resolution, fingerprint: 'v2:5' },
      { ...dead, resolution, queue, fingerprint: 'v2:5' },
    ]),
  ];

  test('no list, count or summary has to read the whole table', async () => {
    const plans: string[] = [];
    const db = explaining(database, plans);
    for (const filter of filters) {
      await listJobs(db, filter, { by: 'keyset', after: null, pageSize: 20 });
      await listJobs(db, filter, { by: 'number', offset: 20, pageSize: 20 });
      if (filter.status === 'dead_letter') await groupDeadJobs(db, filter);
      if (filter.status === undefined) await countFacets(db, filter);
    }
    await listQueues({ db, settingsOf: () => defaultSettings, pushed: new Set() });
    const [first] = (await listJobs(db, {}, { by: 'number', offset: 0, pageSize: 1 })).jobs;
    await findJob(db, first?.jobId ?? '');
    assert.ok(plans.length > 3 * filters.length);
    for (const plan of plans) assert.doesNotMatch(plan, /Seq Scan on job_/);
  });

  test('facets add up to the table, and to what the lists of each status have', async () => {
    for (const filter of [{}, { queue }, { error: 'error 1' }, { resolution: 'cancelled' } as const]) {
      const { total, byStatus } = await countFacets(database.db, filter);
      for (const { status, total: counted, isEstimate } of byStatus) {
        const { count } = await listJobs(
          database.db,
          { ...filter, status },
          { by: 'number', offset: 0, pageSize: 1 },
        );
        assert.deepEqual({ total: counted, isEstimate }, count, status);
      }
      const { jobs } = await walk(database.db, filter, 1000);
      assert.deepEqual(total, { total: jobs.length, isEstimate: false }, JSON.stringify(filter));
    }
  });

  test('throughput counts what was completed in the last half hour, minute by minute', async () => {
    assert.deepEqual(await readThroughput(database.db), { byQueue: new Map(), isPartial: false });
    const completed = await database.db.query<{ job_id: string; queue: string }>(sql`
      SELECT job_id, queue FROM jobs.job_queue WHERE status = 'completed' ORDER BY job_id LIMIT 2`);
    const ids = completed.map(({ job_id: id }) => id);
    await database.db.query(sql`
      UPDATE jobs.job_queue SET completed_at = now() - interval '90 seconds' WHERE job_id = ANY(${ids}::uuid[])`);
    const { byQueue } = await readThroughput(database.db);
    await database.db.query(sql`
      UPDATE jobs.job_queue SET completed_at = NULL WHERE job_id = ANY(${ids}::uuid[])`);
    const counts = completed.map(({ queue: name }) => byQueue.get(name) ?? []);
    for (const minutes of counts) {
      assert.equal(minutes.length, 30);
      assert.equal(minutes.at(-2), 1);
      assert.equal(
        minutes.reduce((sum, count) => sum + count, 0),
        1,
      );
    }
  });

  test('texts that a list is not asked for are not read', async () => {
    const page = { by: 'number', offset: 0, pageSize: 1 } as const;
    const shows = { payload: false, result: true, progress: true };
    const [[shown], [bare]] = [
      (await listJobs(database.db, { queue }, page)).jobs,
      (await listJobs(database.db, { queue }, page, shows)).jobs,
    ];
    assert.equal(shown?.payloadText, '{"a": 1}');
    assert.equal(bare?.payloadText, null);
  });

  test('each list uses the index made for it', async () => {
    const indexes: readonly (readonly [RegExp, JobFilter])[] = [
      [/Backward using job_queue_pkey/, {}],
      [/Backward using job_queue_pkey/, window],
      [/Backward using idx_job_queue_failed_id/, { status: 'failed' }],
      [/Backward using idx_job_queue_dead_id/, dead],
      [/Backward using idx_job_queue_unresolved /, { ...dead, resolution: 'unresolved' }],
      [/idx_job_queue_dead_fingerprint/, { ...dead, fingerprint: 'v2:5' }],
      [/idx_job_queue_running/, { status: 'running' }],
      [/idx_job_queue_claim/, { status: 'pending', queue }],
      [/idx_job_queue_dedupe/, { status: 'pending', queue, dedupeKey: 'key-115' }],
    ];
    for (const [index, filter] of indexes) {
      const plans: string[] = [];
      const db = explaining(database, plans);
      await listJobs(db, filter, { by: 'keyset', after: null, pageSize: 20 });
      assert.equal(plans.length, 2);
      for (const plan of plans) assert.match(plan, index);
    }
  });

  function isMatch(filter: JobFilter, job: Job): boolean {
    const { resolution } = filter;
    return (
      (filter.queue === undefined || job.queue === filter.queue) &&
      (filter.status === undefined || job.status === filter.status) &&
      (filter.fingerprint === undefined || job.fingerprint === filter.fingerprint) &&
      (filter.dedupeKey === undefined || job.dedupeKey === filter.dedupeKey) &&
      (filter.createdFrom === undefined || job.createdAt >= filter.createdFrom) &&
      (filter.createdTo === undefined || job.createdAt < filter.createdTo) &&
      (filter.error === undefined || job.errorMessage?.startsWith(filter.error) === true) &&
      (resolution === undefined ||
        resolution === 'any' ||
        job.resolution === (resolution === 'unresolved' ? null : resolution))
    );
  }

  test('every list returns each matching job once, newest first, with the right total', async () => {
    const { db } = database;
    const all = await walk(db, {}, 1000);
    assert.equal(all.jobs.length, 12_000);
    for (const filter of filters) {
      const expected = all.jobs.filter((job) => isMatch(filter, job)).map((job) => job.jobId);
      const { jobs } = await walk(db, filter, 500);
      assert.deepEqual(
        jobs.map((job) => job.jobId),
        expected,
        JSON.stringify(filter),
      );
      const page = await listJobs(db, filter, { by: 'number', offset: 7, pageSize: 10 });
      assert.deepEqual(
        page.jobs.map((job) => job.jobId),
        expected.slice(7, 17),
      );
      assert.equal(page.hasNext, expected.length > 17);
      assert.equal(page.count.isEstimate, filters[0] === filter);
      if (!page.count.isEstimate) assert.equal(page.count.total, expected.length, JSON.stringify(filter));
    }
  });

  test('groups have the same counts as the list', async () => {
    const { db } = database;
    for (const filter of filters) {
      if (filter.status !== 'dead_letter') continue;
      const { groups, isPartial } = await groupDeadJobs(db, filter);
      assert.equal(isPartial, false);
      const { count } = await listJobs(db, filter, { by: 'number', offset: 0, pageSize: 1 });
      assert.equal(
        groups.reduce((sum, group) => sum + group.count, 0),
        count.total,
      );
      assert.deepEqual(
        groups,
        groups.toSorted((a, b) => b.count - a.count),
      );
    }
  });

  test('queue counts match the jobs', async () => {
    const { db } = database;
    const rows = await database.db.query<{ queue: string; status: string; count: bigint }>(sql`
      SELECT queue, status, count(*) AS count FROM jobs.job_queue GROUP BY queue, status`);
    const queues = await listQueues({ db, settingsOf: () => defaultSettings, pushed: new Set() });
    assert.equal(queues.length, 7);
    for (const { name, counts } of queues)
      for (const status of statuses) {
        const row = rows.find((each) => each.queue === name && each.status === status);
        assert.deepEqual(counts[status], { total: Number(row?.count ?? 0n), isEstimate: false });
      }
  });
});

describe('in a large table', () => {
  const jobs = 120_000;
  let database: TestDatabase;
  before(async () => {
    database = await createTestDatabase();
    // The oldest are completed or dead, the newest are waiting.
    await insertJobs(database, {
      from: 1,
      to: jobs,
      values: sql`
        SELECT CASE WHEN i = 5 OR i = 30000 THEN 'rare' ELSE 'flooded' END, status, NULL, NULL,
               CASE WHEN status = 'dead_letter' THEN 'broken ' || i % 100 END
        FROM (VALUES (CASE WHEN i <= 20000 THEN 'completed' WHEN i <= 50000 THEN 'dead_letter' ELSE 'pending' END))
          AS s (status)`,
    });
  });
  after(() => database.drop());

  test('rare matches without an index are found by following the cursor, though pages are short', async () => {
    const { db } = database;
    const { jobs: found, pages } = await walk(db, { queue: 'rare' }, 20);
    assert.deepEqual(
      found.map((job) => job.createdAt),
      [at(30_000), at(5)],
    );
    assert.equal(pages, 3);
    const done = await walk(db, { status: 'completed', createdTo: at(100) }, 20);
    assert.equal(done.jobs.length, 99);
  });

  test('an index covers the dead letters of one queue', async () => {
    const plans: string[] = [];
    const db = explaining(database, plans);
    const dead = { status: 'dead_letter', resolution: 'unresolved', queue: 'rare' } as const;
    assert.equal((await walk(db, dead, 20)).jobs.length, 1);
    for (const plan of plans) assert.match(plan, /Backward using idx_job_queue_unresolved_of_queue/);
  });

  test('a list by page number returns the cursor to continue with, once', async () => {
    const { db } = database;
    const first = await listJobs(db, { queue: 'rare' }, { by: 'number', offset: 0, pageSize: 20 });
    assert.deepEqual([first.jobs, first.hasNext, first.count.isEstimate], [[], true, true]);
    const { jobs: found } = await walk(db, { queue: 'rare' }, 20);
    const next = await listJobs(db, { queue: 'rare' }, { by: 'keyset', after: first.next, pageSize: 20 });
    assert.equal(next.jobs[0]?.jobId, found[0]?.jobId);
    const second = await listJobs(db, { queue: 'rare' }, { by: 'number', offset: 20, pageSize: 20 });
    assert.deepEqual([second.jobs, second.hasNext, second.next], [[], false, null]);
  });

  test('a list without such a filter can be read to its end by page number', async () => {
    const { db } = database;
    const page = await listJobs(db, {}, { by: 'number', offset: jobs - 10, pageSize: 20 });
    assert.deepEqual([page.jobs.length, page.hasNext], [10, false]);
    assert.equal(page.jobs.at(-1)?.createdAt.getTime(), at(1).getTime());
  });

  test('totals above 10,000 are marked as estimates', async () => {
    const { db } = database;
    const first = { by: 'number', offset: 0, pageSize: 1 } as const;
    for (const [filter, expected] of [
      [{}, jobs],
      [{ status: 'pending' }, 70_000],
      [{ status: 'dead_letter', resolution: 'unresolved' }, 30_000],
    ] as const) {
      const { count } = await listJobs(db, filter, first);
      assert.equal(count.isEstimate, true);
      assert.ok(Math.abs(count.total - expected) < 0.15 * expected, `${count.total} of ${expected}`);
    }
    const few = await listJobs(db, { queue: 'rare', status: 'dead_letter', resolution: 'unresolved' }, first);
    assert.deepEqual(few.count, { total: 1, isEstimate: false });
  });

  test('a filter that leaves some out is counted exactly as far as 25,000 jobs', async () => {
    const { db } = database;
    const totalOf = async (filter: JobFilter) =>
      (await listJobs(db, filter, { by: 'number', offset: 0, pageSize: 1 })).count;
    const exact = (total: number) => ({ total, isEstimate: false });
    // Dead letters end at 50,000: 4,000 of these are the oldest of the 24,000 that are read.
    const [createdFrom, createdTo] = [at(46_001), at(70_001)];
    assert.deepEqual(
      await totalOf({ createdFrom, createdTo, resolution: 'any', error: 'broken' }),
      exact(4000),
    );
    assert.deepEqual(await totalOf({ createdFrom, createdTo, queue: 'nowhere' }), exact(0));
    assert.deepEqual(await totalOf({ createdFrom: at(69_001), createdTo, names: [[['*']]] }), exact(1000));
    assert.equal((await totalOf({ createdFrom, createdTo, names: [[['*']]] })).isEstimate, true);
    assert.equal((await totalOf({ createdFrom: at(40_001), createdTo, queue: 'nowhere' })).isEstimate, true);
  });

  test('groups cover the newest dead letters, and are marked as partial', async () => {
    const { db } = database;
    const dead = { status: 'dead_letter', resolution: 'unresolved' } as const;
    const { groups, isPartial } = await groupDeadJobs(db, dead);
    assert.deepEqual([groups.length, isPartial], [50, true]);
    assert.ok(groups.every(({ count }) => count >= 200));
    const none = await groupDeadJobs(db, { ...dead, error: 'never seen' });
    assert.deepEqual(none, { groups: [], isPartial: true });
  });

  test('queue counts are exact if they are small, and otherwise marked as estimates', async () => {
    const { db } = database;
    const queues = await listQueues({ db, settingsOf: () => defaultSettings, pushed: new Set() });
    const flooded = queues.find(({ name }) => name === 'flooded');
    for (const [status, expected] of [
      ['pending', 70_000],
      ['dead_letter', 30_000],
      ['completed', 20_000],
    ] as const) {
      const { total, isEstimate } = flooded?.counts[status] ?? { total: 0, isEstimate: false };
      assert.equal(isEstimate, true, status);
      // The pages of a sample are chosen at random, and each has jobs of one status.
      assert.ok(total > 0.5 * expected && total < 1.6 * expected, `${status}: ${total}`);
    }
    assert.deepEqual(flooded?.counts.running, { total: 0, isEstimate: false });
    const rare = queues.find(({ name }) => name === 'rare');
    assert.deepEqual(rare?.counts.dead_letter, { total: 1, isEstimate: false });
    assert.equal(rare?.lagSeconds, null);
  });
});
