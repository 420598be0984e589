import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { Client, Pool } from 'pg';
import { createTestDatabase, type TestDatabase } from '../../tests/support/database.ts';
import { createUserDatabase } from './user-database.ts';
import { jobs } from './jobs.ts';
import type { Queryable } from '../platform/postgres/database.ts';
import { prepared, sql } from '../platform/postgres/sql.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

/** One connection, so that every statement meets what the ones before have left there. */
let pool: Pool;
let db: Queryable;
beforeEach(() => {
  pool = new Pool({ connectionString: database.url, max: 1 });
  db = createUserDatabase(pool, { connectWithinMs: 5000 });
});
afterEach(() => pool.end());

const double = (n: number) => prepared(sql`SELECT ${n}::int * 2 AS twice`);

async function namesThere(): Promise<readonly string[]> {
  const { rows } = await pool.query<{ name: string }>('SELECT name FROM pg_prepared_statements');
  return rows.map(({ name }) => name);
}

describe('A prepared statement', () => {
  test('is kept by the connection under one name for one text, whatever its values', async () => {
    assert.deepEqual(await db.query(double(1)), [{ twice: 2 }]);
    assert.deepEqual(await db.query(double(21)), [{ twice: 42 }]);
    assert.equal((await namesThere()).length, 1);
  });

  test('that the connection has forgotten is sent without a name, now and from then on', async () => {
    await db.query(double(1));
    await pool.query('DEALLOCATE ALL');
    assert.deepEqual(await db.query(double(2)), [{ twice: 4 }]);
    await db.query(double(3));
    assert.deepEqual(await namesThere(), []);
  });

  test('that somebody else has left on the connection, as behind a pooler, is sent without a name', async () => {
    await db.query(double(1));
    const [name = ''] = await namesThere();
    const other = new Pool({ connectionString: database.url, max: 1 });
    await other.query(`PREPARE "${name}" AS SELECT 1`);
    assert.deepEqual(await createUserDatabase(other, { connectWithinMs: 5000 }).query(double(4)), [
      { twice: 8 },
    ]);
    await other.end();
  });

  test('whose result has another shape after a migration is sent without a name', async () => {
    await pool.query('CREATE TABLE public.shape (a int)');
    await pool.query('INSERT INTO public.shape VALUES (1)');
    const all = prepared(sql`SELECT * FROM public.shape`);
    assert.deepEqual(await db.query(all), [{ a: 1 }]);
    await pool.query('ALTER TABLE public.shape ADD b int');
    assert.deepEqual(await db.query(all), [{ a: 1, b: null }]);
  });

  test('fails as any other where it is at fault itself, and is not sent twice', async () => {
    await pool.query('CREATE SEQUENCE public.sent');
    const faulty = prepared(sql`SELECT 1 / (nextval('public.sent') - ${1}::bigint) AS never`);
    await assert.rejects(db.query(faulty), /division by zero/);
    const { rows } = await pool.query<{ last: string }>(`SELECT nextval('public.sent')::text AS last`);
    assert.equal(rows[0]?.last, '2');
  });
});

describe('Adding a job', () => {
  test('on a pool keeps the statement ready; in a transaction, which a refusal would end, it does not', async () => {
    await jobs.enqueue(pool, 'mail', { to: 'a' });
    assert.equal((await namesThere()).length, 1);
    await jobs.enqueue(pool, 'mail', { to: 'b' });
    assert.equal((await namesThere()).length, 1);
    await pool.query('DEALLOCATE ALL');
    const { jobId } = await jobs.enqueue(pool, 'mail', { to: 'b, though it was refused' });
    assert.deepEqual(await namesThere(), []);
    const there = await pool.query('SELECT FROM jobs.job_queue WHERE job_id = $1', [jobId]);
    assert.equal(there.rowCount, 1);
    const client = new Client({ connectionString: database.url });
    await client.connect();
    await client.query('BEGIN');
    await jobs.enqueue(client, 'mail', { to: 'c' });
    const { rows } = await client.query('SELECT name FROM pg_prepared_statements');
    assert.deepEqual(rows, []);
    await client.query('COMMIT');
    await client.end();
    const [row] = await database.db.query<{ count: number }>(
      sql`SELECT count(*)::int AS count FROM jobs.job_queue WHERE queue = 'mail'`,
    );
    assert.equal(row?.count, 4);
  });
});
