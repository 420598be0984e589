import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { connectTo, createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { sql } from './sql.ts';

let database: TestDatabase;
before(async () => {
  database = await createTestDatabase();
  await database.db.query(sql`CREATE TABLE public.things (id INT PRIMARY KEY, n BIGINT)`);
  await database.db.query(sql`INSERT INTO public.things VALUES (1, 1)`);
});
after(() => database.drop());

test('a transaction that fails leaves nothing, one that succeeds leaves all', async () => {
  const failed = database.db.transaction(async (tx) => {
    await tx.query(sql`INSERT INTO public.things VALUES (2, 2)`);
    throw new Error('changed my mind');
  });
  await assert.rejects(failed, /changed my mind/);
  await database.db.transaction((tx) =>
    tx.query(sql`INSERT INTO public.things VALUES (3, 9007199254740993)`),
  );
  const rows = await database.db.query(sql`SELECT id, n FROM public.things ORDER BY id`);
  assert.deepEqual(rows, [
    { id: 1, n: 1n },
    { id: 3, n: 9007199254740993n },
  ]);
});

test('a process that stands still inside a transaction loses its locks within seconds', async () => {
  const other = connectTo(database.url, 1);
  const freed = Promise.withResolvers<void>();
  const standing = database.db.transaction(async (tx) => {
    await tx.query(sql`SELECT n FROM public.things WHERE id = 1 FOR UPDATE`);
    // Waits for the lock until the server ends the session that stands still.
    other.query(sql`UPDATE public.things SET n = 2 WHERE id = 1`).then(() => freed.resolve(), freed.reject);
    await freed.promise;
  });
  await assert.rejects(standing);
  const rows = await other.query<{ n: bigint }>(sql`SELECT n FROM public.things WHERE id = 1`);
  assert.equal(rows[0]?.n, 2n);
  await other.end();
});

test('a connection that the server ends is replaced, and the next statement goes through', async () => {
  await database.db.query(sql`
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()`);
  const ended = database.db.query(sql`SELECT pg_terminate_backend(pg_backend_pid())`);
  await assert.rejects(ended);
  assert.deepEqual(await database.db.query(sql`SELECT 1 AS one`), [{ one: 1 }]);
});
