import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { runTasks } from '../../platform/work/retention-tasks.ts';
import { groupRetention } from './group-retention.ts';
import { indexAll } from './index-messages.ts';
import { compactCounts, recountMessages } from './topic-counts.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());
beforeEach(() =>
  database.db.query(sql`TRUNCATE dlq.dlq_messages, dlq.dlq_messages_archive, dlq.fingerprints`),
);

async function store(fingerprint: string, status = 'PENDING'): Promise<void> {
  await database.db.query(sql`
    INSERT INTO dlq.dlq_messages (original_topic, error_message, fingerprint, status, consumer_group)
    VALUES ('a.v1', 'boom', ${fingerprint}, ${status}, 'billing')`);
}

const names = async (): Promise<readonly string[]> =>
  (
    await database.db.query<{ fingerprint: string }>(sql`SELECT fingerprint FROM dlq.fingerprints ORDER BY 1`)
  ).map(({ fingerprint }) => fingerprint);

test('groups without messages are deleted a day after their last failure, those with archived ones stay', async () => {
  const { db } = database;
  for (const one of ['v2:live', 'v2:gone', 'v2:recent']) await store(one);
  await store('v2:archived', 'DEAD');
  await db.call(sql`CALL dlq.archive_old_dlq_messages(-1)`);
  await compactCounts(db);
  await db.query(sql`DELETE FROM dlq.dlq_messages WHERE fingerprint IN ('v2:gone', 'v2:recent')`);
  await compactCounts(db);
  await db.query(sql`UPDATE dlq.group_counts SET hour = hour - interval '30 hours'`);
  await compactCounts(db);
  await db.query(sql`
    UPDATE dlq.fingerprints SET last_at = last_at - interval '2 days' WHERE fingerprint <> 'v2:recent'`);
  await runTasks(groupRetention(db, 1), new AbortController().signal);
  assert.deepEqual(await names(), ['v2:archived', 'v2:live', 'v2:recent']);
  const counts = await db.query(sql`SELECT fingerprint, messages FROM dlq.group_counts`);
  assert.deepEqual(counts, [{ fingerprint: 'v2:live', messages: 1n }]);
});

test('rows of the index whose message is gone are deleted, all others stay', async () => {
  const { db } = database;
  for (let i = 0; i < 7; i += 1) await store('v2:a');
  await store('v2:b', 'DEAD');
  await indexAll(db);
  await db.call(sql`CALL dlq.archive_old_dlq_messages(-1)`);
  await db.query(sql`
    INSERT INTO dlq.message_facets (message_id, created_at) SELECT gen_random_uuid(), now() FROM generate_series(1, 5)`);
  await db.query(sql`
    INSERT INTO dlq.message_facets_archive (message_id, created_at) VALUES (gen_random_uuid(), now())`);
  const counts = await runTasks(groupRetention(db, 3), new AbortController().signal);
  assert.equal(counts['strays'], 6);
  const [left] = await db.query(sql`
    SELECT (SELECT count(*) FROM dlq.message_facets) AS live, (SELECT count(*) FROM dlq.message_facets_archive) AS archived`);
  assert.deepEqual(left, { live: 7n, archived: 1n });
});

test('a recount corrects the counts of groups, folded or not, and names fingerprints that have no row', async () => {
  const { db } = database;
  for (const one of ['v2:a', 'v2:a', 'v2:b']) await store(one);
  await compactCounts(db);
  assert.deepEqual(await recountMessages(db), { topics: [], groups: [] });
  await db.query(sql`UPDATE dlq.group_counts SET messages = 9 WHERE fingerprint = 'v2:a'`);
  await db.query(sql`DELETE FROM dlq.group_counts WHERE fingerprint = 'v2:b'`);
  await db.query(sql`DELETE FROM dlq.fingerprints WHERE fingerprint = 'v2:b'`);
  const at = { topic: 'a.v1', consumerGroup: 'billing', status: 'PENDING' };
  const { groups } = await recountMessages(db);
  assert.deepEqual(groups, [
    { fingerprint: 'v2:a', ...at, counted: 9n, actual: 2n },
    { fingerprint: 'v2:b', ...at, counted: 0n, actual: 1n },
  ]);
  assert.deepEqual(await recountMessages(db), { topics: [], groups: [] });
  await compactCounts(db);
  assert.deepEqual(await recountMessages(db), { topics: [], groups: [] });
  assert.deepEqual(await names(), ['v2:a', 'v2:b']);
});
