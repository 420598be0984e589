import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { Sql, sql } from '../../platform/postgres/sql.ts';
import { findDead, previewDead, type DeadFilter } from './find-dead.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());
beforeEach(() => database.db.query(sql`TRUNCATE jobs.job_queue`));

const all: DeadFilter = {
  queue: null,
  error: null,
  fingerprint: null,
  createdFrom: null,
  createdTo: null,
  jobIds: null,
};

/** Adds jobs with this status, each with its own dedupe key. */
async function add(status: string, count: number, error: string | null = null): Promise<void> {
  await database.db.query(sql`
    INSERT INTO jobs.job_queue (queue, payload, status, dedupe_key, error_message)
    SELECT 'mail', '{}', ${status}, 'key-' || n, ${error} FROM generate_series(1, ${count}::int) AS n`);
}

test('the search for dead letters does not scan the whole table', async () => {
  await add('completed', 20_000);
  await add('pending', 20_000);
  await add('dead_letter', 3000, 'it broke');
  await database.db.query(sql`VACUUM ANALYZE jobs.job_queue`);
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
  const recent = new Date(Date.now() - 3_600_000);
  for (const more of [{}, { queue: 'mail' }, { error: 'it' }, { queue: 'mail', createdFrom: recent }]) {
    const { jobIds, keyTaken } = await findDead(explaining, { ...all, ...more }, 100);
    assert.deepEqual([jobIds.length, keyTaken.length], [0, 100]);
    const preview = await previewDead(explaining, { ...all, ...more });
    assert.deepEqual([preview.matched, preview.keyTaken, preview.isMore], [3000, 3000, false]);
  }
  assert.ok(plans.length > 0);
  for (const plan of plans) assert.doesNotMatch(plan, /Seq Scan on job_queue|hashed SubPlan/);
});

test('a match behind many jobs that do not match is found, step by step', async () => {
  await add('dead_letter', 25, 'something else');
  await add('dead_letter', 3, 'rare');
  const rare = { ...all, error: 'rare' };
  const found = await findDead(database.db, rare, 10, { stepRows: 7 });
  assert.deepEqual([found.jobIds.length, found.isAll], [3, true]);
  const preview = await previewDead(database.db, rare, { stepRows: 7 });
  assert.deepEqual([preview.matched, preview.isMore, preview.sample.length], [3, false, 3]);
  const whole = await findDead(database.db, all, 100, { stepRows: 7 });
  assert.equal(new Set(whole.jobIds).size, 28);
  assert.deepEqual(whole.jobIds, whole.jobIds.toSorted());
});

test('a search that takes too long ends, and reports that there may be more', async () => {
  await add('dead_letter', 25, 'something else');
  await add('dead_letter', 3, 'rare');
  const rare = { ...all, error: 'rare' };
  const look = { stepRows: 7, until: AbortSignal.abort() };
  assert.deepEqual(await findDead(database.db, rare, 10, look), { jobIds: [], keyTaken: [], isAll: false });
  assert.equal((await previewDead(database.db, rare, look)).isMore, true);
});
