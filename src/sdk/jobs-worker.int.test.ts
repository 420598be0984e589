import assert from 'node:assert/strict';
import { after, before, test, type TestContext } from 'node:test';
import { Pool, type PoolConfig } from 'pg';
import { createTestDatabase, type TestDatabase } from '../../tests/support/database.ts';
import { eventually } from '../../tests/support/eventually.ts';
import { untilSessionsEnd } from '../../tests/support/until-sessions-end.ts';
import { sleep } from '../kernel/clock.ts';
import { sql } from '../platform/postgres/sql.ts';
import {
  defineQueue,
  jobs,
  notRetryable,
  snooze,
  type JobEvent,
  type StandardSchema,
  type WorkOptions,
  type WorkersOptions,
} from './index.ts';

let database: TestDatabase;
let queues = 0;
const pools: Pool[] = [];

before(async () => void (database = await createTestDatabase()));
after(async () => {
  await Promise.all(pools.map((pool) => pool.end()));
  await untilSessionsEnd(database.db);
  await database.drop();
});

const newQueue = (): string => `queue-${(queues += 1)}`;

/** Ended when the workers of all tests are. */
function openPool(more: PoolConfig = {}): Pool {
  const pool = new Pool({ connectionString: database.url, max: 6, ...more });
  pools.push(pool);
  return pool;
}

/** A worker on a queue of its own, stopped at the end of the test. */
async function startWork(
  t: TestContext,
  handler: WorkOptions<unknown, unknown>['handler'],
  more: Partial<WorkersOptions & WorkOptions<unknown, unknown> & { pool: Pool }> = {},
) {
  const pool = more.pool ?? openPool();
  const queue = typeof more.queue === 'string' ? more.queue : newQueue();
  const events: JobEvent[] = [];
  const worker = await jobs.work({
    pool,
    queue,
    handler,
    pollMs: 50,
    onEvent: (event) => void events.push(event),
    ...more,
  });
  t.after(() => worker.stop({ withinMs: 100 }));
  return { pool, queue, worker, events };
}

type Row = Readonly<{
  status: string;
  retry_count: number;
  error_message: string | null;
  result: unknown;
  progress: unknown;
}>;

async function rowOf(jobId: string): Promise<Row> {
  const [row] = await database.db.query<Row>(sql`
    SELECT status, retry_count, error_message, result, progress FROM jobs.job_queue WHERE job_id = ${jobId}`);
  assert.ok(row);
  return row;
}

const jobBecomes = (jobId: string, status: string): Promise<Row> =>
  eventually(async () => {
    const row = await rowOf(jobId);
    assert.equal(row.status, status);
    return row;
  });

/** Stores settings of the queue, as a configured server does. */
async function configure(queue: string, backoffMs: number): Promise<void> {
  await database.db.query(sql`
    INSERT INTO jobs.queues (queue, backoff_initial_ms, backoff_max_ms, backoff_jitter)
    VALUES (${queue}, ${backoffMs}, ${backoffMs}, 0)`);
}

type Mail = Readonly<{ to: string }>;

const mailSchema: StandardSchema<Mail, Mail & { domain: string }> = {
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: async (value) => {
      const { to } = value as { to?: unknown };
      if (typeof to !== 'string') return { issues: [{ message: 'must be a text', path: ['to'] }] };
      return { value: { to, domain: to.split('@')[1] ?? '' } };
    },
  },
};

test('a handler gets the payload that its schema returns, and its result is stored', async (t) => {
  const mail = defineQueue(newQueue(), mailSchema);
  const pool = openPool();
  const worker = await jobs.work({ pool, queue: mail, handler: ({ payload }) => payload.domain });
  t.after(() => worker.stop());
  const { jobId } = await jobs.enqueue(pool, mail, { to: 'a@example.com' });
  assert.equal((await jobBecomes(jobId, 'completed')).result, 'example.com');
});

test('a payload that does not match the schema is dead at once, and the handler never sees it', async (t) => {
  const name = newQueue();
  const pool = openPool();
  const { jobId } = await jobs.enqueue(pool, name, { to: 7 });
  const worker = await jobs.work({
    pool,
    queue: defineQueue(name, mailSchema),
    handler: () => assert.fail('it was handled'),
    onEvent: () => {},
  });
  t.after(() => worker.stop());
  const row = await jobBecomes(jobId, 'dead_letter');
  assert.deepEqual(
    [row.retry_count, row.error_message],
    [1, `payload does not match the schema of ${name}: to: must be a text`],
  );
});

test('outcomes of jobs are events, and an error in the listener does not disturb the worker', async (t) => {
  const outcomes: string[] = [];
  const { pool, queue } = await startWork(
    t,
    ({ payload, deferrals }) => {
      if (payload === 'never') throw notRetryable('no');
      if (payload === 'later' && deferrals === 0) throw snooze(0);
      return 1n;
    },
    {
      onEvent(event) {
        if (event.type === 'finished') outcomes.push(event.outcome);
        throw new Error('I do not listen');
      },
    },
  );
  const added = await jobs.enqueueMany(pool, queue, [{ payload: 'never' }, { payload: 'later' }]);
  await jobBecomes(added[0]?.jobId ?? '', 'dead_letter');
  assert.equal((await jobBecomes(added[1]?.jobId ?? '', 'completed')).result, null);
  await eventually(() => assert.deepEqual(outcomes.toSorted(), ['completed', 'dead_letter', 'deferred']));
});

test('workers do not depend on the type parsers, session settings and isolation level of the service', async (t) => {
  const pool = openPool({
    types: { getTypeParser: () => ((text: string) => `<${text}>`) as never },
    options:
      '-c default_transaction_isolation=serializable -c default_transaction_read_only=on -c search_path=nowhere -c DateStyle=German',
  });
  const seen: unknown[] = [];
  const { queue, events } = await startWork(t, ({ payload }) => void seen.push(payload), { pool });
  const adding = openPool();
  const added = await jobs.enqueueMany(
    adding,
    queue,
    Array.from({ length: 100 }, (_, n) => ({ payload: { n } })),
  );
  for (const { jobId } of added) await jobBecomes(jobId, 'completed');
  assert.equal(seen.length, 100);
  assert.ok(seen.every((payload) => typeof (payload as { n: unknown }).n === 'number'));
  assert.deepEqual(
    events.filter(({ type }) => type === 'trouble'),
    [],
  );
});

test('a handler whose job is cancelled is told to stop at once', async (t) => {
  const started = Promise.withResolvers<void>();
  const aborted = Promise.withResolvers<unknown>();
  const { pool, queue, events } = await startWork(
    t,
    (_job, { signal }) => {
      signal.addEventListener('abort', () => aborted.resolve(signal.reason));
      started.resolve();
      return aborted.promise;
    },
    { leaseMs: 3_600_000 },
  );
  const { jobId } = await jobs.enqueue(pool, queue, {});
  await started.promise;
  await database.db.query(sql`
    UPDATE jobs.job_queue SET status = 'dead_letter', resolution = 'cancelled', lease_owner = NULL,
           lease_epoch = nextval('platform.lease_epochs')
    WHERE job_id = ${jobId}`);
  await database.db.query(sql`SELECT pg_notify('redrive', ${`jobs-cancelled:${queue}`})`);
  assert.match(String(await aborted.promise), /cancelled/);
  await eventually(() =>
    assert.deepEqual(
      events.filter(({ type }) => type === 'trouble'),
      [],
    ),
  );
  assert.equal((await rowOf(jobId)).status, 'dead_letter');
});

test('progress is visible while the job runs, and a heartbeat throws after the lease was lost', async (t) => {
  const goOn = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<unknown>();
  const { pool, queue } = await startWork(t, async (_job, { progress, heartbeat }) => {
    progress({ done: 1 });
    await heartbeat();
    progress({ done: 2 });
    await goOn.promise;
    await heartbeat().catch(ended.resolve);
  });
  const { jobId } = await jobs.enqueue(pool, queue, {});
  await eventually(async () => assert.deepEqual((await rowOf(jobId)).progress, { done: 2 }));
  await database.db.query(sql`
    UPDATE jobs.job_queue SET lease_epoch = nextval('platform.lease_epochs') WHERE job_id = ${jobId}`);
  goOn.resolve();
  assert.match(String(await ended.promise), /lease was lost/);
});

test('the queues of a process share one LISTEN connection, and need none with wake: poll', async (t) => {
  // With the parts of the address in their places, as services often have them.
  const { hostname: host, port, pathname, username: user, password } = new URL(database.url);
  const parts = { host, port: Number(port), database: pathname.slice(1), user, password };
  const pool = new Pool({ ...parts, application_name: 'listening' });
  pools.push(pool);
  const workers = jobs.workers({ pool, onEvent: () => {} });
  t.after(() => workers.stop({ withinMs: 100 }));
  const handled: string[] = [];
  const all = [newQueue(), newQueue(), newQueue()];
  for (const queue of all) await workers.work({ queue, handler: (job) => void handled.push(job.queue) });
  const polling = openPool({ application_name: 'polling' });
  await startWork(t, ({ queue }) => void handled.push(queue), {
    pool: polling,
    wake: 'poll',
    queue: 'polled',
  });
  for (const queue of [...all, 'polled']) await jobs.enqueue(pool, queue, {});
  await eventually(() => assert.deepEqual(handled.toSorted(), [...all, 'polled'].toSorted()));
  const listeners = (name: string) =>
    database.db.query(sql`
      SELECT 1 FROM pg_stat_activity WHERE application_name = ${name} AND query LIKE 'LISTEN%'`);
  await eventually(async () => assert.equal((await listeners('listening')).length, 1));
  assert.equal((await listeners('polling')).length, 0);
});

test('a worker whose handlers do not stop is degraded and claims nothing until one of them ends', async (t) => {
  const ends: (() => void)[] = [];
  const queue = newQueue();
  await configure(queue, 60_000);
  const { pool, worker } = await startWork(
    t,
    ({ payload }) => (payload === 'hangs' ? new Promise<void>((resolve) => ends.push(resolve)) : 'done'),
    { queue, concurrency: 2, timeoutMs: 50 },
  );
  await jobs.enqueueMany(pool, queue, [{ payload: 'hangs' }, { payload: 'hangs' }]);
  await eventually(() => assert.deepEqual(worker.state(), { status: 'degraded', running: 0, zombies: 2 }));
  const { jobId } = await jobs.enqueue(pool, queue, 'waits');
  // Ten times as long as it takes to look for work again.
  await sleep(500);
  assert.equal((await rowOf(jobId)).status, 'pending');
  ends[0]?.();
  await jobBecomes(jobId, 'completed');
  assert.deepEqual([worker.zombies(), worker.state().status], [1, 'working']);
  ends[1]?.();
  await eventually(() => assert.equal(worker.zombies(), 0));
});

test('a job that is retried beside its first handler, which did not stop, is settled by the second', async (t) => {
  const queue = newQueue();
  await configure(queue, 1);
  const first = Promise.withResolvers<string>();
  const second = Promise.withResolvers<string>();
  const isThere = Promise.withResolvers<void>();
  const { pool, worker } = await startWork(
    t,
    ({ retryCount }) => {
      if (retryCount === 0) return first.promise;
      isThere.resolve();
      return second.promise;
    },
    { queue, timeoutMs: 1000, concurrency: 4 },
  );
  const { jobId } = await jobs.enqueue(pool, queue, {});
  await isThere.promise;
  assert.equal(worker.state().running, 2);
  first.resolve('the first');
  await eventually(() => assert.equal(worker.state().running, 1));
  second.resolve('the second');
  const row = await jobBecomes(jobId, 'completed');
  assert.deepEqual([row.result, row.retry_count], ['the second', 1]);
});

test('a job that crashed its worker and has one attempt left runs while nothing else of the process is claimed', async (t) => {
  const pool = openPool();
  const workers = jobs.workers({ pool, pollMs: 50, onEvent: () => {} });
  t.after(() => workers.stop({ withinMs: 100 }));
  const [one, other] = [newQueue(), newQueue()];
  const beside: unknown[] = [];
  let handled = 0;
  const handler = async ({ jobId, payload }: { jobId: string; payload: unknown }): Promise<void> => {
    handled += 1;
    if (payload !== 'killer') return sleep(((payload as number) % 5) * 40);
    beside.push(
      ...(await database.db.query(sql`
        SELECT job_id FROM jobs.job_queue WHERE status = 'running' AND job_id <> ${jobId}
          AND queue IN (${one}, ${other})`)),
    );
  };
  const many = Array.from({ length: 100 }, (_, n) => ({ payload: n }));
  await jobs.enqueueMany(pool, one, many);
  await jobs.enqueueMany(pool, other, many);
  const killer = await jobs.enqueue(pool, one, 'killer');
  await database.db.query(sql`
    UPDATE jobs.job_queue SET status = 'failed', retry_count = 2, lease_lost = true WHERE job_id = ${killer.jobId}`);
  for (const queue of [one, other]) await workers.work({ queue, handler, concurrency: 5 });
  await jobBecomes(killer.jobId, 'completed');
  assert.deepEqual(beside, []);
  await eventually(() => assert.equal(handled, 201));
});

test('a stop gives back unstarted jobs and waits for running ones until its deadline', async (t) => {
  const goOn = Promise.withResolvers<void>();
  const { pool, queue, worker } = await startWork(t, () => goOn.promise, { concurrency: 2 });
  const added = await jobs.enqueueMany(pool, queue, [{ payload: 1 }, { payload: 2 }, { payload: 3 }]);
  await eventually(() => assert.equal(worker.state().running, 2));
  await worker.stop({ withinMs: 200 });
  assert.equal(worker.state().status, 'stopped');
  const statuses = await Promise.all(added.map(async ({ jobId }) => (await rowOf(jobId)).status));
  assert.deepEqual(statuses, ['running', 'running', 'pending']);
  goOn.resolve();
});

test('connections that are cut cost nothing but time, and never the process', async (t) => {
  const pool = openPool({ application_name: 'cut-off' });
  const { queue } = await startWork(t, ({ payload }) => payload, { pool, leaseMs: 2000 });
  for (let n = 0; n < 5; n += 1) {
    await database.db.query(sql`
      SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'cut-off'`);
    const [row] = await database.db.query<{ job_id: string }>(sql`
      SELECT job_id FROM jobs.enqueue(${queue}, ${JSON.stringify(n)}::jsonb)`);
    assert.equal((await jobBecomes(row?.job_id ?? '', 'completed')).result, n);
  }
});

test('handlers that use up every connection of the pool lose their leases, are told to stop, and the worker continues', async (t) => {
  const pool = openPool({ max: 2 });
  const queue = newQueue();
  await configure(queue, 1);
  const { events } = await startWork(
    t,
    async ({ retryCount }, { signal }) => {
      if (retryCount > 0) return 'done';
      const client = await pool.connect();
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      client.release();
      throw new Error(String(signal.reason));
    },
    { pool, queue, leaseMs: 1500, concurrency: 2 },
  );
  const added = await jobs.enqueueMany(openPool(), queue, [{ payload: 1 }, { payload: 2 }]);
  for (const { jobId } of added) assert.equal((await jobBecomes(jobId, 'completed')).retry_count, 1);
  const troubles = events.flatMap((event) => (event.type === 'trouble' ? [String(event.error)] : []));
  assert.ok(troubles.some((text) => /none of the 2 connections of the pool was free for 500 ms/.test(text)));
});

test('a database without the jobs schema, or with an older one, is reported before anything is claimed', async (t) => {
  const empty = await createTestDatabase('empty');
  const pool = new Pool({ connectionString: empty.url });
  t.after(async () => {
    await pool.end();
    await untilSessionsEnd(empty.db);
    await empty.drop();
  });
  const work = (): Promise<unknown> => jobs.work({ pool, queue: 'mail', handler: () => {} });
  await assert.rejects(work(), { code: 'SYS_PLATFORM_SCHEMA_OUTDATED', message: /redrive migrate up/ });
  await pool.query('CREATE SCHEMA platform; CREATE TABLE platform.migrations (slice TEXT, number INT)');
  await assert.rejects(work(), /no .* yet, or that of an older version.*redrive migrate up/);
});
