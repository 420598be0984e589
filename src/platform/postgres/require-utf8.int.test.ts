import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, migrationSources, type TestDatabase } from '../../../tests/support/database.ts';
import { runRedrive } from '../../../tests/support/redrive-process.ts';
import { migrateUp } from './migrate.ts';
import { sql } from './sql.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase('latin1')));
after(() => database.drop());

test('a database that is not UTF-8 is refused before the first migration', async () => {
  await assert.rejects(
    migrateUp(database.db, migrationSources),
    /has the encoding LATIN1, and Redrive needs UTF8: create another database with CREATE DATABASE … ENCODING 'UTF8'/,
  );
  const rows = await database.db.query<{ count: bigint }>(sql`
    SELECT count(*) AS count FROM pg_namespace WHERE nspname IN ('platform', 'dlq')`);
  assert.equal(rows[0]?.count, 0n);
});

test('serve and doctor say what to do about a database that is not UTF-8', async () => {
  const env = { DATABASE_URL: database.url };
  const served = await runRedrive(['serve', '--port', '0'], env);
  assert.equal(served.code, 1);
  assert.match(served.err, /has the encoding LATIN1.*ENCODING 'UTF8' TEMPLATE template0/);
  const examined = await runRedrive(['doctor'], env);
  assert.equal(examined.code, 2);
  assert.match(examined.out, /^problem +encoding +database \S+ has the encoding LATIN1/m);
});
