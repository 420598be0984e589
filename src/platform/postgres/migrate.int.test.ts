import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  connectTo,
  createTestDatabase,
  migrationSources,
  type TestDatabase,
} from '../../../tests/support/database.ts';
import { migrateDown, migrateUp, migrationStatus, readMigrations } from './migrate.ts';
import { sql } from './sql.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase('empty')));
after(() => database.drop());

test('several processes that start at once apply each migration exactly once', async () => {
  const replicas = Array.from({ length: 4 }, () => connectTo(database.url, 2));
  const applied = await Promise.all(replicas.map((db) => migrateUp(db, migrationSources)));
  const all = await readMigrations(migrationSources);
  assert.equal(applied.flat().length, all.length);
  const status = await migrationStatus(database.db, migrationSources);
  assert.ok(status.every(({ state }) => state === 'applied'));
  await Promise.all(replicas.map((db) => db.end()));
});

test('every migration can be taken back and applied again, and leaves only history and positions behind', async () => {
  for (const { slice } of migrationSources.toReversed())
    await migrateDown(database.db, migrationSources, { slice, to: 0 });
  const rows = await database.db.query<{ name: string }>(sql`
    SELECT n.nspname || '.' || c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname IN ('dlq', 'platform') AND c.relkind IN ('r', 'S', 'v', 'i')
      AND c.relname NOT LIKE 'migrations%' AND c.relname NOT LIKE 'dlq_positions%'`);
  assert.deepEqual(rows, []);
  await migrateUp(database.db, migrationSources);
});

test('a migration that was changed after it was applied is refused by name', async () => {
  await database.db.query(
    sql`UPDATE platform.migrations SET checksum = 'other' WHERE slice = 'dlq' AND number = 2`,
  );
  await assert.rejects(migrateUp(database.db, migrationSources), /changed after it was applied: dlq\/2/);
  const status = await migrationStatus(database.db, migrationSources);
  assert.equal(status.find(({ slice, number }) => slice === 'dlq' && number === 2)?.state, 'changed');
});
