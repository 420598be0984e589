import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { Client, Pool } from 'pg';
import { createTestDatabase, type TestDatabase } from '../../tests/support/database.ts';
import { untilSessionsEnd } from '../../tests/support/until-sessions-end.ts';
import { sql } from '../platform/postgres/sql.ts';
import { jobs, type EnqueuedJob, type Transaction } from './index.ts';

let database: TestDatabase;
let pool: Pool;
let queues = 0;

before(async () => {
  database = await createTestDatabase();
  pool = new Pool({ connectionString: database.url, max: 10 });
});
after(async () => {
  await pool.end();
  await untilSessionsEnd(database.db);
  await database.drop();
});

const newQueue = (): string => `queue-${(queues += 1)}`;

async function inTransaction<T>(
  work: (tx: Transaction) => Promise<T>,
  end: 'COMMIT' | 'ROLLBACK' = 'COMMIT',
): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    const result = await work(client);
    await client.query(end);
    return result;
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  } finally {
    client.release();
  }
}

type Stored = Readonly<{
  job_id: string;
  payload: unknown;
  status: string;
  max_retries: number;
  dedupe_key: string | null;
  priority: number;
  run_at: Date;
  lead_seconds: number;
  trace: string | null;
}>;

/** In the order in which they would be claimed. */
async function stored(queue: string): Promise<readonly Stored[]> {
  return database.db.query<Stored>(sql`
    SELECT job_id, payload, status, max_retries, dedupe_key, priority, run_at,
           extract(epoch FROM run_at - sort_at)::int AS lead_seconds, trace
    FROM jobs.job_queue WHERE queue = ${queue} ORDER BY sort_at, job_id`);
}

async function complete(jobId: string): Promise<void> {
  await database.db.query(sql`UPDATE jobs.job_queue SET status = 'completed' WHERE job_id = ${jobId}`);
}

test('a job is there with the commit and not before, and after a rollback it never was', async () => {
  const queue = newQueue();
  const kept = await inTransaction(async (tx) => {
    const added = await jobs.enqueue(tx, queue, { to: 'a@example.com' });
    assert.equal((await stored(queue)).length, 0);
    return added;
  });
  await inTransaction((tx) => jobs.enqueue(tx, queue, { to: 'b@example.com' }), 'ROLLBACK');
  await inTransaction((tx) => jobs.enqueueMany(tx, queue, [{ payload: 1 }]), 'ROLLBACK');
  const [row, ...more] = await stored(queue);
  assert.deepEqual([row?.job_id, row?.payload, more.length], [kept.jobId, { to: 'a@example.com' }, 0]);
  assert.deepEqual(kept, { jobId: kept.jobId, status: 'pending', duplicate: false });
});

test('what is said about a job is kept, whether it comes alone or with others', async () => {
  const queue = newQueue();
  const runAt = new Date(Date.now() + 3_600_000);
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  const said = { dedupeKey: 'é', priority: 7, maxRetries: 9, traceparent };
  await jobs.enqueue(pool, queue, [1], { ...said, runAt });
  await jobs.enqueueMany(pool, queue, [{ payload: null, ...said, dedupeKey: '名' }]);
  await jobs.enqueueMany(pool, queue, [{ payload: 0, runAt, traceparent: 'nonsense' }]);
  const [soon, later, last] = await stored(queue);
  const options = (row: Stored | undefined) => [row?.dedupe_key, row?.priority, row?.max_retries, row?.trace];
  assert.deepEqual(options(soon), ['名', 7, 9, traceparent]);
  assert.deepEqual(options(later), ['é', 7, 9, traceparent]);
  assert.deepEqual(options(last), [null, 0, 3, null]);
  assert.deepEqual([soon?.lead_seconds, later?.lead_seconds, last?.lead_seconds], [420, 0, 0]);
  assert.deepEqual([later?.run_at, last?.run_at], [runAt, runAt]);
});

test('of a key there is one job that is not over, and the second answer says which', async () => {
  const queue = newQueue();
  const add = (): Promise<EnqueuedJob> =>
    inTransaction((tx) => jobs.enqueue(tx, queue, {}, { dedupeKey: 'one' }));
  const first = await add();
  assert.deepEqual(await add(), { jobId: first.jobId, status: 'pending', duplicate: true });
  const elsewhere = await jobs.enqueue(pool, newQueue(), {}, { dedupeKey: 'one' });
  assert.equal(elsewhere.duplicate, false);
  await complete(first.jobId);
  const next = await add();
  assert.deepEqual([next.duplicate, next.jobId === first.jobId], [false, false]);
});

test('a job is the same whether it is added on a pool or in a transaction', async () => {
  const queue = newQueue();
  await database.db.query(sql`INSERT INTO jobs.queues (queue, max_retries) VALUES (${queue}, 5)`);
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
  for (const options of [
    {},
    { traceparent },
    { priority: 100, maxRetries: 2, traceparent },
    { runAt: new Date(Date.now() - 3_600_000), priority: 3 },
    { runAt: new Date(Date.now() + 3_600_000), priority: 3, dedupeKey: 'later' },
  ]) {
    const apart = newQueue();
    await database.db.query(sql`INSERT INTO jobs.queues (queue, max_retries) VALUES (${apart}, 5)`);
    await jobs.enqueue(pool, queue, { n: 1 }, options);
    await inTransaction((tx) => jobs.enqueue(tx, apart, { n: 1 }, options));
    // Times but those that were told are the moment at which it was added.
    const asAdded = (name: string): Promise<readonly { row: unknown }[]> =>
      database.db.query<{ row: unknown }>(sql`
        SELECT to_jsonb(j) - ARRAY['job_id', 'queue', 'created_at', 'run_at', 'sort_at']
               || jsonb_build_object(
                    'is_of_now', created_at BETWEEN now() - interval '1 minute' AND clock_timestamp(),
                    'run_after', round(extract(epoch FROM run_at - created_at)),
                    'sort_after', round(extract(epoch FROM sort_at - created_at)),
                    'is_exact', sort_at IN (run_at, created_at - priority * interval '1 minute')) AS row
        FROM jobs.job_queue j WHERE queue = ${name} ORDER BY job_id DESC LIMIT 1`);
    const [row] = await asAdded(queue);
    assert.deepEqual(row, (await asAdded(apart))[0]);
    assert.ok(row !== undefined);
  }
});

test('on a pool, too, the one that has the key is told, whatever has become of it', async () => {
  const queue = newQueue();
  const add = (): Promise<EnqueuedJob> => jobs.enqueue(pool, queue, {}, { dedupeKey: 'one' });
  const answers = await Promise.all(Array.from({ length: 20 }, add));
  const first = answers.find(({ duplicate }) => !duplicate);
  assert.equal(answers.filter(({ duplicate }) => duplicate).length, 19);
  assert.ok(answers.every(({ jobId }) => jobId === first?.jobId));
  await database.db.query(sql`UPDATE jobs.job_queue SET status = 'running' WHERE queue = ${queue}`);
  assert.deepEqual(await add(), { jobId: first?.jobId, status: 'running', duplicate: true });
  await complete(first?.jobId ?? '');
  assert.equal((await add()).duplicate, false);
});

test('whoever waits for a job is told when it is added, on a pool and in a transaction', async () => {
  const told: string[] = [];
  const listener = new Client({ connectionString: database.url });
  await listener.connect();
  listener.on('notification', ({ payload = '' }) => told.push(payload));
  await listener.query('LISTEN redrive');
  const [waited, unwaited] = [newQueue(), newQueue()];
  await database.db.query(sql`
    INSERT INTO platform.idle_workers (channel, worker, idle_until)
    VALUES (${`jobs:${waited}`}, 'one', now() + interval '1 hour'),
           (${`jobs:${unwaited}`}, 'two', now() - interval '1 hour')`);
  try {
    const later = { runAt: new Date(Date.now() + 60_000) };
    for (const options of [{}, later]) {
      await jobs.enqueue(pool, waited, 1, options);
      await jobs.enqueue(pool, unwaited, 1, options);
    }
    await inTransaction((tx) => jobs.enqueue(tx, waited, 1));
    await listener.query('SELECT 1');
    assert.deepEqual(told, [`jobs:${waited}`, `jobs:${waited}`]);
  } finally {
    await listener.end();
  }
});

test('jobs that are added one after the other stand in the queue in this order, by whichever way', async () => {
  const queue = newQueue();
  await inTransaction(async (tx) => {
    for (let i = 0; i < 300; i += 1)
      await tx.query(`SELECT jobs.enqueue($1::text, $2::jsonb)`, [queue, String(i)]);
  });
  for (let i = 300; i < 400; i += 1) await jobs.enqueue(pool, queue, i);
  const rows = await stored(queue);
  assert.deepEqual(
    rows.map(({ payload }) => payload),
    rows.map((_, i) => i),
  );
  for (const [way, all] of [rows.slice(0, 300), rows.slice(300)].entries()) {
    const ids = all.map(({ job_id }) => job_id);
    assert.deepEqual(ids, ids.toSorted(), `way ${way}`);
    for (const id of ids) {
      assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      const madeMs = Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16);
      assert.ok(Math.abs(Date.now() - madeMs) < 60_000);
    }
  }
});

test('the time in an id is that of the database, whatever the clock of the service says', async (t) => {
  const queue = newQueue();
  const ageMs = async ({ jobId }: EnqueuedJob): Promise<number> => {
    const [row] = await database.db.query<{ created_ms: number }>(sql`
      SELECT date_part('epoch', created_at) * 1000 AS created_ms FROM jobs.job_queue WHERE job_id = ${jobId}`);
    return (row?.created_ms ?? NaN) - Number.parseInt(jobId.replaceAll('-', '').slice(0, 12), 16);
  };
  t.mock.timers.enable({ apis: ['Date'], now: Date.now() - 3_600_000 });
  assert.ok(Math.abs(await ageMs(await jobs.enqueue(pool, queue, 'behind'))) < 5000);
  t.mock.timers.setTime(Date.now() + 7_200_000);
  assert.ok(Math.abs(await ageMs(await jobs.enqueue(pool, queue, 'ahead'))) < 5000);
  t.mock.timers.reset();
  assert.ok(Math.abs(await ageMs(await jobs.enqueue(pool, queue, 'right again'))) < 5000);
});

test('of many jobs with keys each is told whether it is new, or which one it is', async () => {
  const queue = newQueue();
  const old = await jobs.enqueue(pool, queue, 'old', { dedupeKey: 'old' });
  const answers = await inTransaction((tx) =>
    jobs.enqueueMany(tx, queue, [
      { payload: 'a', dedupeKey: 'z' },
      { payload: 'b' },
      { payload: 'again', dedupeKey: 'old' },
      { payload: 'c', dedupeKey: 'y' },
      { payload: 'twice', dedupeKey: 'z' },
    ]),
  );
  const [a, b, again, c, twice] = answers;
  assert.deepEqual(
    answers.map(({ duplicate }) => duplicate),
    [false, false, true, false, true],
  );
  assert.deepEqual([again?.jobId, twice?.jobId], [old.jobId, a?.jobId]);
  const rows = await stored(queue);
  assert.deepEqual(
    rows.map(({ payload, job_id }) => [payload, job_id]),
    [
      ['old', old.jobId],
      ['a', a?.jobId],
      ['b', b?.jobId],
      ['c', c?.jobId],
    ],
  );
});

test('transactions that add the same keys at once in any order neither fail nor double a job', async () => {
  const queue = newQueue();
  const keys = Array.from({ length: 1000 }, (_, i) => `key-${i}`);
  const many = (order: readonly string[]) =>
    inTransaction((tx) =>
      jobs.enqueueMany(
        tx,
        queue,
        order.map((dedupeKey) => ({ payload: 1, dedupeKey })),
      ),
    );
  const answers = await Promise.all([
    many(keys),
    many(keys.toReversed()),
    many(keys),
    many(keys.toReversed()),
  ]);
  assert.equal((await stored(queue)).length, 1000);
  assert.equal(answers.flat().filter(({ duplicate }) => !duplicate).length, 1000);
  assert.equal(new Set(answers.flat().map(({ jobId }) => jobId)).size, 1000);
});

test('thousands are added in a few statements, and stand in the queue in their order', async () => {
  const queue = newQueue();
  let statements = 0;
  const counting: Transaction = {
    query: (text, values) => {
      statements += 1;
      return pool.query(text, values);
    },
  };
  const payloads = Array.from({ length: 2500 }, (_, n) => ({ n }));
  const answers = await jobs.enqueueMany(
    counting,
    queue,
    payloads.map((payload) => ({ payload })),
  );
  assert.deepEqual([statements, answers.length], [3, 2500]);
  const rows = await stored(queue);
  assert.deepEqual(
    rows.map(({ payload }) => payload),
    payloads,
  );
  assert.deepEqual(
    rows.map(({ job_id }) => job_id),
    answers.map(({ jobId }) => jobId),
  );
});

test('large jobs go in smaller batches', async () => {
  let largest = 0;
  const watching: Transaction = {
    query: (text, values) => {
      largest = Math.max(largest, ...values.map((value) => String(value).length));
      return pool.query(text, values);
    },
  };
  const payload = 'x'.repeat(700_000);
  const answers = await jobs.enqueueMany(
    watching,
    newQueue(),
    Array.from({ length: 9 }, () => ({ payload })),
  );
  assert.equal(answers.length, 9);
  assert.ok(largest < 5 * 1024 * 1024);
});

test('whatever a service has told its pg and its session, the answer is the same', async () => {
  const queue = newQueue();
  const client = new Client({
    connectionString: database.url,
    types: { getTypeParser: (oid: number) => (oid === 25 ? String : () => 'something else') as never },
    options:
      '-c search_path=nowhere -c DateStyle=SQL,DMY -c TimeZone=Asia/Kolkata -c default_transaction_isolation=serializable',
  });
  await client.connect();
  try {
    const runAt = new Date(Date.UTC(2031, 1, 3));
    const one = await jobs.enqueue(client, queue, { n: 0.1 }, { dedupeKey: 'k', runAt });
    const [two] = await jobs.enqueueMany(client, queue, [{ payload: 1, dedupeKey: 'k' }]);
    assert.deepEqual(two, { jobId: one.jobId, status: 'pending', duplicate: true });
    assert.deepEqual((await stored(queue))[0]?.run_at, runAt);
  } finally {
    await client.end();
  }
});

test('a database without jobs is told in words', async () => {
  const empty = await createTestDatabase('empty');
  const client = new Client({ connectionString: empty.url });
  await client.connect();
  try {
    await assert.rejects(jobs.enqueue(client, 'mail', {}), /no jobs.*redrive migrate up/);
    await assert.rejects(jobs.enqueueMany(client, 'mail', [{ payload: 1 }]), /no jobs.*redrive migrate up/);
  } finally {
    await client.end();
    await untilSessionsEnd(empty.db);
    await empty.drop();
  }
});

test('a service needs no more rights than to add', async () => {
  const role = `service_${randomUUID().replaceAll('-', '')}`;
  const queue = newQueue();
  await inTransaction(async (tx) => {
    const run = async (text: string): Promise<unknown> => tx.query(text, []);
    await run(`CREATE ROLE ${role}`);
    await run(`GRANT USAGE ON SCHEMA jobs, platform TO ${role}`);
    await run(`GRANT INSERT, SELECT ON jobs.job_queue TO ${role}`);
    await run(`GRANT SELECT ON jobs.queues, platform.idle_workers TO ${role}`);
    await run(`SET LOCAL ROLE ${role}`);
    assert.equal((await jobs.enqueue(tx, queue, 1, { dedupeKey: 'k' })).duplicate, false);
    const many = await jobs.enqueueMany(tx, queue, [{ payload: 2 }, { payload: 3, dedupeKey: 'k' }]);
    assert.deepEqual(
      many.map(({ duplicate }) => duplicate),
      [false, true],
    );
    await run('RESET ROLE');
    await run(`DROP OWNED BY ${role}`);
    await run(`DROP ROLE ${role}`);
  });
});
