import assert from 'node:assert/strict';
import { after, before, test, type TestContext } from 'node:test';
import { connectTo, createTestDatabase, type TestDatabase } from '../../tests/support/database.ts';
import { eventually } from '../../tests/support/eventually.ts';
import { createTestJobStore, type TestJobStore } from '../../tests/support/job-store.ts';
import { sql } from '../platform/postgres/sql.ts';
import { defaultSettings, type QueueSettings } from './domain/queue-settings.ts';
import type { ClaimedJob } from './claim-jobs.ts';
import { slowQueue } from './queue-limits.ts';
import { createQueues, writeConfiguredQueues, type Queues } from './queues.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

let queues = 0;

/** Adds a queue with `count` jobs. */
async function makeQueue(limits: Partial<QueueSettings>, count: number): Promise<string> {
  queues += 1;
  const queue = `limited-${queues}`;
  await writeConfiguredQueues(database.db, [{ ...defaultSettings, ...limits, name: queue }]);
  await addJobs(queue, count);
  return queue;
}

async function addJobs(queue: string, count: number): Promise<void> {
  const payloads = Array.from({ length: count }, (_, n) => ({ payload: { n } }));
  await database.db.query(sql`SELECT jobs.enqueue_many(${queue}, ${JSON.stringify(payloads)}::jsonb)`);
}

type Process = Readonly<{
  store: TestJobStore;
  known: Queues;
  claim(limit?: number): Promise<readonly ClaimedJob[]>;
}>;

/** Connections and queue settings of its own: as much of a process as a claim needs. */
async function startProcess(t: TestContext, queue: string): Promise<Process> {
  const db = connectTo(database.url, 3);
  t.after(() => db.end());
  const known = createQueues(db);
  await known.refresh();
  const store = createTestJobStore(db, { queues: known });
  const claim = async (limit = 10): Promise<readonly ClaimedJob[]> =>
    (await store.claim({ queue, limit })).jobs;
  return { store, known, claim };
}

async function complete({ store }: Process, queue: string, jobs: readonly ClaimedJob[]): Promise<void> {
  await store.settle(
    queue,
    jobs.map((job) => ({ job, ran: null, outcome: 'completed', result: null })),
  );
}

async function runningIn(queue: string): Promise<number> {
  const [row] = await database.db.query<{ count: bigint }>(sql`
    SELECT count(*) AS count FROM jobs.job_queue WHERE queue = ${queue} AND status = 'running'`);
  return Number(row?.count);
}

async function throttleOf(queue: string): Promise<{ rate: number; peak: number } | null> {
  const [row] = await database.db.query<{ throttle: { rate: number; peak: number } | null }>(sql`
    SELECT throttle FROM jobs.queues WHERE queue = ${queue}`);
  return row?.throttle ?? null;
}

test('two processes that claim as fast as they can never exceed the limit of running jobs', async (t) => {
  const count = 150;
  const queue = await makeQueue({ maxRunning: 3 }, count);
  const processes = [await startProcess(t, queue), await startProcess(t, queue)];
  let unsettled = 0;
  let most = 0;
  let done = 0;
  const work = async (process: Process): Promise<void> => {
    while (done < count) {
      const jobs = await process.claim();
      unsettled += jobs.length;
      most = Math.max(most, unsettled, await runningIn(queue));
      // Counted as running until it is settled.
      unsettled -= jobs.length;
      if (jobs.length > 0) await complete(process, queue, jobs);
      done += jobs.length;
    }
  };
  await Promise.all(processes.flatMap((process) => [work(process), work(process)]));
  assert.deepEqual([most, done], [3, count]);
});

test('no window exceeds the rate limit over all processes, and each is used up', async (t) => {
  const rateLimit = { count: 20, windowMs: 1000 };
  const queue = await makeQueue({ rateLimit }, 100);
  const processes = [await startProcess(t, queue), await startProcess(t, queue)];
  const clock = async (): Promise<number> => {
    const [row] = await database.db.query<{ now: Date }>(sql`SELECT clock_timestamp() AS now`);
    return Math.floor((row?.now.getTime() ?? 0) / rateLimit.windowMs);
  };
  const firstWindow = await clock();
  let claimed = 0;
  const work = async ({ claim }: Process): Promise<void> => {
    while (claimed < 70) {
      const { length } = await claim();
      claimed += length;
      const windows = (await clock()) - firstWindow + 1;
      assert.ok(claimed <= windows * rateLimit.count, `${claimed} in ${windows} windows`);
    }
  };
  await Promise.all(processes.map(work));
  const [row] = await database.db.query<{ window_taken: number }>(sql`
    SELECT window_taken FROM jobs.queues WHERE queue = ${queue}`);
  assert.ok(row !== undefined && row.window_taken <= rateLimit.count);
});

test('a claim that finds fewer jobs leaves the rest of the window', async (t) => {
  const queue = await makeQueue({ rateLimit: { count: 20, windowMs: 3_600_000 } }, 5);
  const { claim } = await startProcess(t, queue);
  assert.equal((await claim(100)).length, 5);
  await addJobs(queue, 30);
  assert.equal((await claim(100)).length, 15);
  assert.equal((await claim(100)).length, 0);
});

test('nothing is claimed from a paused queue, with and without limits', async (t) => {
  for (const limits of [{}, { maxRunning: 5 }]) {
    const queue = await makeQueue(limits, 3);
    const { claim } = await startProcess(t, queue);
    await database.db.query(sql`UPDATE jobs.queues SET paused = true WHERE queue = ${queue}`);
    assert.equal((await claim()).length, 0);
    await database.db.query(sql`UPDATE jobs.queues SET paused = false WHERE queue = ${queue}`);
    assert.equal((await claim()).length, 3);
  }
});

test('a process that does not know of a limit yet claims nothing until it does', async (t) => {
  const queue = await makeQueue({}, 10);
  const { claim, known } = await startProcess(t, queue);
  assert.equal((await claim(2)).length, 2);
  await writeConfiguredQueues(database.db, [{ ...defaultSettings, maxRunning: 3, name: queue }]);
  assert.equal((await claim()).length, 0);
  await known.refresh();
  assert.equal((await claim()).length, 1, 'two are running from before');
  await writeConfiguredQueues(database.db, []);
  assert.equal(
    (await claim()).length,
    7,
    'a limit that was removed does not apply, whether the process knows or not',
  );
});

test('a busy target throttles its queue in all processes, at most once a second', async (t) => {
  const queue = await makeQueue({}, 200);
  const { claim, known } = await startProcess(t, queue);
  const cuts = await Promise.all([1, 2, 3, 4].map(() => slowQueue(database.db, queue, 40)));
  assert.equal(cuts.filter((isCut) => isCut).length, 1);
  assert.deepEqual(await throttleOf(queue), { ...(await throttleOf(queue)), rate: 20, peak: 40 });
  assert.equal((await claim(100)).length, 0, 'not heard of yet');
  await known.refresh();
  const some = await eventually(async () => {
    const jobs = await claim(100);
    assert.ok(jobs.length > 0);
    return jobs;
  });
  assert.ok(some.length >= 20 && some.length <= 40, `${some.length}`);
});

test('the first claim after a throttle has ended removes it from the row', async (t) => {
  const queue = await makeQueue({}, 30);
  await slowQueue(database.db, queue, 10);
  await database.db.query(sql`
    UPDATE jobs.queues SET throttle = throttle || '{"cut_at_ms": 0, "window_at_ms": 0}' WHERE queue = ${queue}`);
  const { claim, known } = await startProcess(t, queue);
  assert.ok(known.isLimited(queue));
  assert.equal((await claim(20)).length, 20);
  assert.equal(await throttleOf(queue), null);
  await known.refresh();
  assert.equal(known.isLimited(queue), false);
});

test('an invalid throttle in the row is ignored', async (t) => {
  const queue = await makeQueue({}, 8);
  for (const nonsense of ['{}', '[]', '17', '{"rate": "fast"}']) {
    await database.db.query(sql`
      UPDATE jobs.queues SET throttle = ${nonsense}::jsonb WHERE queue = ${queue}`);
    const { claim } = await startProcess(t, queue);
    assert.equal((await claim(2)).length, 2, nonsense);
  }
});

test('throttling a queue without a row adds one', async () => {
  assert.equal(await slowQueue(database.db, 'rowless', 8), true);
  assert.equal((await throttleOf('rowless'))?.rate, 4);
});
