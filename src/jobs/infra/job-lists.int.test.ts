import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { statuses } from '../domain/job.ts';
import { listJobs } from '../usecase/list-jobs.ts';
import type { Job, JobFilter } from '../usecase/reading-ports.ts';
import { createPostgresJobReader } from './postgres-job-reader.ts';

/** Runs every statement, and keeps the plan it has when there is any other way than reading the whole table. */
function explaining(database: TestDatabase, plans: string[]): Queryable {
  return {
    async query<Row>(statement: Sql) {
      // What asks for a plan itself reads no row.
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

/** One job a second from this time on; ids hold their time, as those that the database makes. */
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

async function walk(reader: ReturnType<typeof createPostgresJobReader>, filter: JobFilter, pageSize: number) {
  const jobs: Job[] = [];
  let pages = 0;
  for (let after: string | null = null; ;) {
    const page = await listJobs(reader, filter, { by: 'keyset', after, pageSize });
    jobs.push(...page.jobs);
    pages += 1;
    assert.equal(page.hasNext, page.next !== null);
    if (page.next === null) return { jobs, pages };
    after = page.next;
  }
}

describe('in a table of every kind of job', () => {
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
    ]),
  ];

  test('no list, count or summary has to read the whole table', async () => {
    const plans: string[] = [];
    const reader = createPostgresJobReader(explaining(database, plans));
    for (const filter of filters) {
      await listJobs(reader, filter, { by: 'keyset', after: null, pageSize: 20 });
      await listJobs(reader, filter, { by: 'number', offset: 20, pageSize: 20 });
      if (filter.status === 'dead_letter') await reader.deadGroups(filter);
    }
    await reader.queues();
    const [first] = (await reader.list({}, { limit: 1, offset: 0, after: null })).jobs;
    await reader.find(first?.jobId ?? '');
    await reader.attempts(first?.jobId ?? '');
    await reader.actions(first?.jobId ?? '');
    assert.ok(plans.length > 3 * filters.length);
    for (const plan of plans) assert.doesNotMatch(plan, /Seq Scan on job_/);
  });

  test('each list goes by the index that is made for it', async () => {
    const indexes: readonly (readonly [RegExp, JobFilter])[] = [
      [/Backward using job_queue_pkey/, {}],
      [/Backward using job_queue_pkey/, window],
      [/Backward using idx_job_queue_failed_id/, { status: 'failed' }],
      [/Backward using idx_job_queue_dead_id/, dead],
      [/Backward using idx_job_queue_unresolved /, { ...dead, resolution: 'unresolved' }],
      [/idx_job_queue_running/, { status: 'running' }],
      [/idx_job_queue_claim/, { status: 'pending', queue }],
      [/idx_job_queue_dedupe/, { status: 'pending', queue, dedupeKey: 'key-115' }],
    ];
    for (const [index, filter] of indexes) {
      const plans: string[] = [];
      const reader = createPostgresJobReader(explaining(database, plans));
      await listJobs(reader, filter, { by: 'keyset', after: null, pageSize: 20 });
      assert.equal(plans.length, 2);
      for (const plan of plans) assert.match(plan, index);
    }
  });

  function isMatch(filter: JobFilter, job: Job): boolean {
    const { resolution } = filter;
    return (
      (filter.queue === undefined || job.queue === filter.queue) &&
      (filter.status === undefined || job.status === filter.status) &&
      (filter.dedupeKey === undefined || job.dedupeKey === filter.dedupeKey) &&
      (filter.createdFrom === undefined || job.createdAt >= filter.createdFrom) &&
      (filter.createdTo === undefined || job.createdAt < filter.createdTo) &&
      (filter.error === undefined || job.errorMessage?.startsWith(filter.error) === true) &&
      (resolution === undefined ||
        resolution === 'any' ||
        job.resolution === (resolution === 'unresolved' ? null : resolution))
    );
  }

  test('every list has what its filter says, once and newest first, and the right total', async () => {
    const reader = createPostgresJobReader(database.db);
    const all = await walk(reader, {}, 1000);
    assert.equal(all.jobs.length, 12_000);
    for (const filter of filters) {
      const expected = all.jobs.filter((job) => isMatch(filter, job)).map((job) => job.jobId);
      const { jobs } = await walk(reader, filter, 500);
      assert.deepEqual(
        jobs.map((job) => job.jobId),
        expected,
        JSON.stringify(filter),
      );
      const page = await listJobs(reader, filter, { by: 'number', offset: 7, pageSize: 10 });
      assert.deepEqual(
        page.jobs.map((job) => job.jobId),
        expected.slice(7, 17),
      );
      assert.equal(page.hasNext, expected.length > 17);
      assert.equal(page.count.isEstimate, filters[0] === filter);
      if (!page.count.isEstimate) assert.equal(page.count.total, expected.length, JSON.stringify(filter));
    }
  });

  test('groups count what the list has', async () => {
    const reader = createPostgresJobReader(database.db);
    for (const filter of filters) {
      if (filter.status !== 'dead_letter') continue;
      const { groups, isPartial } = await reader.deadGroups(filter);
      assert.equal(isPartial, false);
      const { count } = await listJobs(reader, filter, { by: 'number', offset: 0, pageSize: 1 });
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

  test('the counts of the queues are those of their jobs', async () => {
    const reader = createPostgresJobReader(database.db);
    const rows = await database.db.query<{ queue: string; status: string; count: bigint }>(sql`
      SELECT queue, status, count(*) AS count FROM jobs.job_queue GROUP BY queue, status`);
    const queues = await reader.queues();
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
    // The oldest are done or dead, the newest wait.
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

  test('what is rare and in no index is found by going on, though pages are short', async () => {
    const reader = createPostgresJobReader(database.db);
    const { jobs: found, pages } = await walk(reader, { queue: 'rare' }, 20);
    assert.deepEqual(
      found.map((job) => job.createdAt),
      [at(30_000), at(5)],
    );
    assert.equal(pages, 3);
    const done = await walk(reader, { status: 'completed', createdTo: at(100) }, 20);
    assert.equal(done.jobs.length, 99);
  });

  test('a queue with few of many dead letters has an index for them', async () => {
    const plans: string[] = [];
    const reader = createPostgresJobReader(explaining(database, plans));
    const dead = { status: 'dead_letter', resolution: 'unresolved', queue: 'rare' } as const;
    assert.equal((await walk(reader, dead, 20)).jobs.length, 1);
    for (const plan of plans) assert.match(plan, /Backward using idx_job_queue_unresolved_of_queue/);
  });

  test('a list by numbers says where it goes on by cursor, once', async () => {
    const reader = createPostgresJobReader(database.db);
    const first = await listJobs(reader, { queue: 'rare' }, { by: 'number', offset: 0, pageSize: 20 });
    assert.deepEqual([first.jobs, first.hasNext, first.count.isEstimate], [[], true, true]);
    const { jobs: found } = await walk(reader, { queue: 'rare' }, 20);
    const next = await listJobs(reader, { queue: 'rare' }, { by: 'keyset', after: first.next, pageSize: 20 });
    assert.equal(next.jobs[0]?.jobId, found[0]?.jobId);
    const second = await listJobs(reader, { queue: 'rare' }, { by: 'number', offset: 20, pageSize: 20 });
    assert.deepEqual([second.jobs, second.hasNext, second.next], [[], false, null]);
  });

  test('a list without such a filter goes as deep by numbers as it is', async () => {
    const reader = createPostgresJobReader(database.db);
    const page = await listJobs(reader, {}, { by: 'number', offset: jobs - 10, pageSize: 20 });
    assert.deepEqual([page.jobs.length, page.hasNext], [10, false]);
    assert.equal(page.jobs.at(-1)?.createdAt.getTime(), at(1).getTime());
  });

  test('totals beyond ten thousand are estimates and say so', async () => {
    const reader = createPostgresJobReader(database.db);
    const first = { by: 'number', offset: 0, pageSize: 1 } as const;
    for (const [filter, expected] of [
      [{}, jobs],
      [{ status: 'pending' }, 70_000],
      [{ status: 'dead_letter', resolution: 'unresolved' }, 30_000],
    ] as const) {
      const { count } = await listJobs(reader, filter, first);
      assert.equal(count.isEstimate, true);
      assert.ok(Math.abs(count.total - expected) < 0.15 * expected, `${count.total} of ${expected}`);
    }
    const few = await listJobs(
      reader,
      { queue: 'rare', status: 'dead_letter', resolution: 'unresolved' },
      first,
    );
    assert.deepEqual(few.count, { total: 1, isEstimate: false });
  });

  test('groups are of the newest dead letters, and say that they are not of all', async () => {
    const reader = createPostgresJobReader(database.db);
    const dead = { status: 'dead_letter', resolution: 'unresolved' } as const;
    const { groups, isPartial } = await reader.deadGroups(dead);
    assert.deepEqual([groups.length, isPartial], [50, true]);
    assert.ok(groups.every(({ count }) => count >= 200));
    const none = await reader.deadGroups({ ...dead, error: 'never seen' });
    assert.deepEqual(none, { groups: [], isPartial: true });
  });

  test('counts of queues are exact where they are small, and otherwise estimates that say so', async () => {
    const reader = createPostgresJobReader(database.db);
    const queues = await reader.queues();
    const flooded = queues.find(({ name }) => name === 'flooded');
    for (const [status, expected] of [
      ['pending', 70_000],
      ['dead_letter', 30_000],
      ['completed', 20_000],
    ] as const) {
      const { total, isEstimate } = flooded?.counts[status] ?? { total: 0, isEstimate: false };
      assert.equal(isEstimate, true, status);
      // The pages of a sample are chosen at random, and each holds jobs of one status.
      assert.ok(total > 0.5 * expected && total < 1.6 * expected, `${status}: ${total}`);
    }
    assert.deepEqual(flooded?.counts.running, { total: 0, isEstimate: false });
    const rare = queues.find(({ name }) => name === 'rare');
    assert.deepEqual(rare?.counts.dead_letter, { total: 1, isEstimate: false });
    assert.equal(rare?.lagSeconds, null);
  });
});
