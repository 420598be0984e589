import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../../tests/support/database.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import { listMessageGroups, messageGroups } from './list-message-groups.ts';

/** 30 000 dead messages among 100 000, in 2000 groups of which every tenth cause has two topics. */
let database: TestDatabase;
before(async () => {
  database = await createTestDatabase();
  await database.db.query(sql`
    INSERT INTO dlq.dlq_messages (original_topic, error_message, fingerprint, status, created_at)
    SELECT 'topic.' || (n % 20 + CASE WHEN n % 2000 < 200 AND n % 3 = 0 THEN 1 ELSE 0 END), 'it broke',
           'v1:' || lpad(to_hex(n % 2000), 16, '0'),
           CASE WHEN n <= 30000 THEN CASE WHEN n % 2 = 0 THEN 'PENDING' ELSE 'DEAD' END ELSE 'RESOLVED' END,
           clock_timestamp() - n * interval '1 second'
    FROM generate_series(1, 100000) AS n`);
  await database.db.query(sql`SELECT dlq.fold_group_changes()`);
  await database.db.query(
    sql`ANALYZE dlq.dlq_messages, dlq.group_counts, dlq.group_changes, dlq.fingerprints`,
  );
});
after(() => database.drop());

test('groups have the counts and the oldest and newest message of their topic', async () => {
  const { groups, isPartial } = await listMessageGroups(database.db, null);
  assert.equal(isPartial, false);
  assert.equal(
    groups.reduce((sum, { count }) => sum + count, 0),
    30_000,
  );
  const rows = await database.db.query<{ key: string; count: number; oldest: number; newest: number }>(sql`
    SELECT fingerprint || ' ' || original_topic AS key, count(*)::int AS count,
           floor(extract(epoch FROM min(created_at)) * 1000)::float8 AS oldest,
           floor(extract(epoch FROM max(created_at)) * 1000)::float8 AS newest
    FROM dlq.dlq_messages WHERE status IN ('PENDING', 'DEAD') GROUP BY 1`);
  const expected = new Map(rows.map(({ key, ...row }) => [key, row]));
  assert.equal(groups.length, expected.size);
  for (const { key, count, oldestAt, newestAt } of groups)
    assert.deepEqual(
      { count, oldest: oldestAt?.getTime(), newest: newestAt?.getTime() },
      expected.get(key.join(' ')),
      key.join(' '),
    );
});

test('a role that is narrowed to a topic gets its groups alone', async () => {
  const { groups } = await listMessageGroups(database.db, [[['topic.1']]]);
  assert.ok(groups.length > 0);
  assert.deepEqual([...new Set(groups.map(({ place }) => place.topic))], ['topic.1']);
});

test('messages are looked up by indexes alone', async () => {
  const rows = await database.db.query<{ 'QUERY PLAN': string }>(sql`EXPLAIN ${messageGroups(null)}`);
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  assert.match(plan, /idx_dlq_messages_fingerprint/);
  assert.doesNotMatch(plan, /Seq Scan on dlq_messages/, plan);
  const times: number[] = [];
  for (let n = 0; n < 20; n += 1) {
    const begin = performance.now();
    await listMessageGroups(database.db, null);
    times.push(performance.now() - begin);
  }
  console.log(
    `2000 groups: ${times
      .toSorted((a, b) => a - b)
      .map((ms) => Math.round(ms))
      .join(' ')} ms`,
  );
});
