import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { createTestDatabase, migrationSources, type TestDatabase } from '../../../tests/support/database.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import { migrateUp, readMigrations } from '../../platform/postgres/migrate.ts';
import { Sql, sql } from '../../platform/postgres/sql.ts';
import { archiveMessages, createMessageArchive, purgeArchive } from './archive.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());
beforeEach(() => database.db.query(sql`TRUNCATE dlq.dlq_messages, dlq.dlq_messages_archive`));

async function addMessages(status: string, count: number): Promise<void> {
  await database.db.query(sql`
    INSERT INTO dlq.dlq_messages (original_topic, error_message, payload, status, updated_at)
    SELECT 'orders.v1', 'boom', '{}', ${status}, now() - interval '31 days' FROM generate_series(1, ${count}::int)`);
}

async function countIn(table: Sql): Promise<number> {
  const rows = await database.db.query<{ count: bigint }>(sql`SELECT count(*) AS count FROM ${table}`);
  return Number(rows[0]?.count);
}

test('both tables have the same columns in the same order', async () => {
  const columnsOf = (name: string) =>
    database.db.query(sql`
      SELECT column_name, data_type, is_nullable FROM information_schema.columns
      WHERE table_schema = 'dlq' AND table_name = ${name} ORDER BY ordinal_position`);
  assert.deepEqual(await columnsOf('dlq_messages_archive'), await columnsOf('dlq_messages'));
});

test('terminal messages are archived whole, the others stay', async () => {
  await addMessages('RESOLVED', 5);
  await addMessages('DEAD', 5);
  await addMessages('PENDING', 3);
  assert.equal(await archiveMessages(database.db, 30), 10);
  assert.equal(await countIn(sql`dlq.dlq_messages`), 3);
  assert.equal(await countIn(sql`dlq.dlq_messages_archive`), 10);
});

test('a locked row is neither archived nor lost', async () => {
  await addMessages('DEAD', 10);
  await database.db.transaction(async (tx) => {
    await tx.query(sql`SELECT id FROM dlq.dlq_messages ORDER BY id LIMIT 4 FOR UPDATE`);
    assert.equal(await archiveMessages(database.db, 30), 6);
  });
  assert.equal(await countIn(sql`dlq.dlq_messages`), 4);
  assert.equal(await archiveMessages(database.db, 30), 4);
  assert.equal(await countIn(sql`dlq.dlq_messages_archive`), 10);
});

test('archived messages are purged after purge_days, and their coordinates stay known', async () => {
  await addMessages('RESOLVED', 3);
  await database.db.query(sql`
    INSERT INTO dlq.dlq_messages
      (original_topic, error_message, status, updated_at, source_topic, source_topic_id, source_partition, source_offset)
    VALUES ('orders.v1', 'boom', 'DEAD', now() - interval '400 days', 'orders.dlq', gen_random_uuid(), 0, 7)`);
  await archiveMessages(database.db, 30);
  assert.equal(await purgeArchive(database.db, 365), 1);
  assert.equal(await countIn(sql`dlq.dlq_messages_archive`), 3);
  assert.equal(await countIn(sql`dlq.arrivals WHERE kind = 'purged' AND "offset" = 7`), 1);
});

test('the service archives and purges at the scheduled times', async () => {
  await addMessages('DEAD', 2);
  const archived: number[] = [];
  const service = createMessageArchive(
    createTestWorker(database.db),
    {
      db: database.db,
      log: { info: () => {}, warn: () => {}, debug: () => {} },
      onArchived: (count) => archived.push(count),
    },
    { schedule: '* * * * * *', retentionDays: 30, purgeDays: 365 },
  );
  await service.start();
  await eventually(() => assert.ok(archived.length >= 2));
  await service.stop(AbortSignal.timeout(5000));
  assert.deepEqual(archived.slice(0, 2), [2, 0]);
});

test('the running counts follow every kind of change', async () => {
  const counts = () =>
    database.db.query(sql`
      SELECT original_topic, status, sum(messages)::int AS messages FROM dlq.topic_counts
      GROUP BY original_topic, status HAVING sum(messages) <> 0 ORDER BY original_topic, status`);
  await addMessages('PENDING', 5);
  await addMessages('DEAD', 2);
  await database.db.query(sql`UPDATE dlq.dlq_messages SET status = 'RESOLVED' WHERE status = 'PENDING'`);
  await database.db.query(
    sql`UPDATE dlq.dlq_messages SET original_topic = 'bills.v1' WHERE id IN (SELECT id FROM dlq.dlq_messages WHERE status = 'RESOLVED' LIMIT 2)`,
  );
  await database.db.query(sql`DELETE FROM dlq.dlq_messages WHERE status = 'DEAD'`);
  const expected = [
    { original_topic: 'bills.v1', status: 'RESOLVED', messages: 2 },
    { original_topic: 'orders.v1', status: 'RESOLVED', messages: 3 },
  ];
  assert.deepEqual(await counts(), expected);
  await database.db.query(sql`SELECT dlq.compact_topic_counts()`);
  assert.deepEqual(await counts(), expected, 'compaction changes no sum');
});

test('a database of the predecessor is migrated with its rows', async () => {
  const old = await createTestDatabase('empty');
  try {
    const migrations = (await readMigrations(migrationSources)).filter(({ slice }) => slice === 'dlq');
    for (const { up } of migrations.slice(0, 3)) await old.db.query(new Sql([up], []));
    await old.db.query(sql`
      INSERT INTO dlq.dlq_messages (original_topic, error_message, payload, status, retry_count)
      VALUES ('orders.v1', 'boom', '{"a": 1}', 'RETRYING', 3), ('orders.v1', 'boom', NULL, 'PENDING', 0)`);
    const applied = await migrateUp(old.db, migrationSources);
    assert.deepEqual(
      applied.filter(({ slice }) => slice === 'dlq').map(({ number }) => number),
      migrations.slice(3).map(({ number }) => number),
    );
    const rows = await old.db.query<{ messages: number }>(
      sql`SELECT sum(messages)::int AS messages FROM dlq.topic_counts`,
    );
    assert.equal(rows[0]?.messages, 2);
    await old.db.query(sql`INSERT INTO dlq.dlq_messages (original_topic, error_message) VALUES ('x', 'y')`);
  } finally {
    await old.drop();
  }
});
