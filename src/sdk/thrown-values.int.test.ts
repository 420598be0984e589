import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Pool } from 'pg';
import { createTestDatabase, type TestDatabase } from '../../tests/support/database.ts';
import { eventually } from '../../tests/support/eventually.ts';
import { hostileValues } from '../../tests/support/hostile-values.ts';
import { sql } from '../platform/postgres/sql.ts';
import { jobs, notRetryable, type JobEvent } from './index.ts';

let database: TestDatabase;
let pool: Pool;
before(async () => {
  database = await createTestDatabase();
  pool = new Pool({ connectionString: database.url, max: 6 });
});
after(async () => {
  await pool.end();
  await database.drop();
});

type Failure = Readonly<{ name: string; error: string; error_class: string | null; stack: string | null }>;

async function failuresOf(queue: string): Promise<readonly Failure[]> {
  return database.db.query<Failure>(sql`
    SELECT j.payload ->> 'name' AS name, a.error, a.error_class, a.stack
    FROM jobs.job_queue j JOIN jobs.job_attempts a ON a.job_id = j.job_id WHERE j.queue = ${queue}`);
}

for (const traceparent of [undefined, '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'])
  test(`every thrown value costs its job one attempt and nothing else${traceparent ? ', even below a span' : ''}`, async (t) => {
    const queue = traceparent === undefined ? 'thrown' : 'thrown-traced';
    const events: JobEvent[] = [];
    const values = new Map(hostileValues);
    const worker = await jobs.work({
      pool,
      queue,
      handler: ({ payload }) => {
        const make = values.get((payload as { name: string }).name);
        if (make === undefined) return 'fine';
        throw make();
      },
      onEvent: (event) => void events.push(event),
    });
    t.after(() => worker.stop({ withinMs: 1000 }));
    const names = [...values.keys(), 'a neighbour'];
    await jobs.enqueueMany(
      pool,
      queue,
      names.map((name) => ({ payload: { name }, maxRetries: 1, traceparent })),
    );
    await eventually(async () => {
      const rows = await database.db.query<{ name: string; status: string; retry_count: number }>(sql`
        SELECT payload ->> 'name' AS name, status, retry_count FROM jobs.job_queue WHERE queue = ${queue}
        ORDER BY job_id`);
      assert.deepEqual(
        rows.map(({ name, status, retry_count: failures }) => [name, status, failures]),
        names.map((name) => (values.has(name) ? [name, 'dead_letter', 1] : [name, 'completed', 0])),
      );
    });
    const failures = await failuresOf(queue);
    assert.equal(failures.length, values.size);
    for (const { name, error, stack } of failures) {
      assert.ok(error.length > 0 && Buffer.byteLength(error) <= 4000, name);
      assert.ok(!error.includes('[object Object]'), `${name}: ${error}`);
      assert.ok(stack === null || Buffer.byteLength(stack) <= 8000, name);
    }
    assert.deepEqual(
      events.filter(({ type }) => type !== 'finished'),
      [],
    );
    assert.deepEqual(worker.state(), { status: 'working', running: 0, zombies: 0 });
  });

test('every return value is stored as a result or dropped', async (t) => {
  const values = new Map(hostileValues);
  const worker = await jobs.work({
    pool,
    queue: 'returned',
    handler: ({ payload }) => values.get((payload as { name: string }).name)?.(),
    onEvent: () => {},
  });
  t.after(() => worker.stop({ withinMs: 1000 }));
  const added = await jobs.enqueueMany(
    pool,
    'returned',
    [...values.keys()].map((name) => ({ payload: { name }, maxRetries: 1 })),
  );
  await eventually(async () => {
    const rows = await database.db.query<{ name: string; status: string; error: string }>(sql`
      SELECT payload ->> 'name' AS name, status, error_message AS error FROM jobs.job_queue
      WHERE queue = 'returned' AND status <> 'completed'`);
    // Reading the `then` of such a value throws before anybody has it.
    const unawaitable = /every trap throws|revoked proxy/;
    assert.deepEqual(
      rows.filter(({ name, status }) => !unawaitable.test(name) || status !== 'dead_letter'),
      [],
    );
  });
  assert.equal(added.length, values.size);
});

test('a failure stores the class and stack of the thrown error, with its causes', async (t) => {
  class CardDeclined extends Error {}
  const worker = await jobs.work({
    pool,
    queue: 'stacks',
    handler: ({ payload }) => {
      if (payload === 'plain') throw { code: 51, text: 'declined' };
      const error = new CardDeclined('no money', { cause: new RangeError('limit') });
      throw payload === 'final' ? notRetryable('given up', error) : error;
    },
    onEvent: () => {},
  });
  t.after(() => worker.stop({ withinMs: 1000 }));
  for (const payload of ['plain', 'error', 'final'])
    await jobs.enqueue(pool, 'stacks', payload, { maxRetries: 1 });
  await eventually(async () => assert.equal((await failuresOf('stacks')).length, 3));
  const rows = await database.db.query<Failure>(sql`
    SELECT j.payload #>> '{}' AS name, a.error, a.error_class, a.stack
    FROM jobs.job_queue j JOIN jobs.job_attempts a ON a.job_id = j.job_id WHERE j.queue = 'stacks'`);
  const byName = new Map(rows.map((row) => [row.name, row]));
  assert.deepEqual(byName.get('plain'), {
    name: 'plain',
    error: '{"code":51,"text":"declined"}',
    error_class: 'Object',
    stack: null,
  });
  assert.equal(byName.get('error')?.error_class, 'CardDeclined');
  assert.match(byName.get('error')?.stack ?? '', /no money\n.*thrown-values.*caused by: RangeError: limit/s);
  assert.match(
    byName.get('final')?.stack ?? '',
    /given up\n.*caused by: Error: no money.*caused by: RangeError/s,
  );
});

test('a job starts after its creation, whatever the clock of its worker says', async (t) => {
  t.mock.timers.enable({ apis: ['Date'], now: new Date('2001-01-01T00:00:00Z') });
  const worker = await jobs.work({ pool, queue: 'clocks', handler: () => 'done', onEvent: () => {} });
  t.after(() => worker.stop({ withinMs: 1000 }));
  const { jobId } = await jobs.enqueue(pool, 'clocks', {});
  await eventually(async () => {
    const [row] = await database.db.query<{ is_in_order: boolean | null }>(sql`
      SELECT created_at <= started_at AND started_at <= completed_at AS is_in_order
      FROM jobs.job_queue WHERE job_id = ${jobId} AND status = 'completed'`);
    assert.equal(row?.is_in_order, true);
  });
});
