import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Client } from 'pg';
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

test('rows mean the same whatever the role or the database says about the form of values', async (t) => {
  const odd = await createTestDatabase();
  t.after(() => odd.drop());
  const name = new URL(odd.url).pathname.slice(1);
  const client = new Client({ connectionString: odd.url });
  await client.connect();
  for (const setting of [
    `DateStyle = 'German, DMY'`,
    `IntervalStyle = 'iso_8601'`,
    `extra_float_digits = -15`,
    `bytea_output = 'escape'`,
    `TimeZone = 'Asia/Kolkata'`,
  ])
    await client.query(`ALTER DATABASE ${name} SET ${setting}`);
  await client.end();
  const db = connectTo(odd.url);
  t.after(() => db.end());
  const read = sql`
    SELECT '2026-11-16T11:15:28.123Z'::timestamptz AS at, '2026-11-16T11:15:28.123456Z'::timestamptz::text AS text,
           1794827728123.5::float8 AS float, '\\xc300'::bytea AS bytes, '-infinity'::timestamptz AS never,
           ${new Date('2026-02-03T04:05:06.789Z')}::timestamptz AS given`;
  const expected = {
    at: new Date('2026-11-16T11:15:28.123Z'),
    text: '2026-11-16 16:45:28.123456+05:30',
    float: 1_794_827_728_123.5,
    bytes: Buffer.from([0xc3, 0]),
    never: Number.NEGATIVE_INFINITY,
    given: new Date('2026-02-03T04:05:06.789Z'),
  };
  assert.deepEqual(await db.query(read), [expected]);
  assert.deepEqual(await db.transaction((tx) => tx.query(read)), [expected]);
});
