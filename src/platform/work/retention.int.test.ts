import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import { batchTask, deleteTask, runTasks, type Counts, type RetentionTask } from './retention-tasks.ts';
import { createRetention, every, TableBusyError } from './retention.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

const soon = (): AbortSignal => AbortSignal.timeout(5000);
const forEver = new AbortController().signal;
const idle: RetentionTask = { name: 'idle', run: async () => ({ rows: 0 }) };

function watch(owner: string, ...rounds: readonly (readonly RetentionTask[])[]) {
  const done: Counts[][] = rounds.map(() => []);
  const logged: string[] = [];
  const log = (level: string) => (_facts: unknown, message: string) => logged.push(`${level} ${message}`);
  const service = createRetention(createTestWorker(database.db, owner), {
    name: 'test.retention',
    rounds: rounds.map((tasks, i) => ({
      schedule: every(5),
      tasks,
      done: 'deleted rows',
      onDone: (counts) => done[i]?.push(counts),
    })),
    log: { info: log('info'), warn: log('warn'), debug: log('debug') },
  });
  return { service, done, logged };
}

test('one replica at a time runs rounds, again and again', async () => {
  const [one, two] = [watch('one', [idle]), watch('two', [idle])];
  await one.service.start();
  await eventually(() => assert.ok((one.done[0]?.length ?? 0) > 0));
  await two.service.start();
  await eventually(() => assert.ok((one.done[0]?.length ?? 0) > 5));
  assert.deepEqual([two.done, one.logged, two.logged], [[[]], [], []]);
  await one.service.stop(soon());
  await two.service.stop(soon());
});

test('a round that changed something is logged with its counts', async () => {
  const { service, done, logged } = watch('one', [
    { name: 'rows', run: async () => ({ deleted: 2 }) },
    { name: 'more rows', run: async () => ({ deleted: 1, archived: 0 }) },
  ]);
  await service.start();
  await eventually(() => assert.deepEqual(done[0]?.[0], { deleted: 3, archived: 0 }));
  await service.stop(soon());
  assert.equal(logged[0], 'info deleted rows');
});

test('a task that fails is logged, and neither the tasks after it nor the other rounds wait for it', async () => {
  const broken: RetentionTask = { name: 'broken', run: () => Promise.reject(new Error('no')) };
  const { service, done, logged } = watch('one', [broken, idle], [idle]);
  await service.start();
  await eventually(() => assert.deepEqual([done[0]?.[0], (done[1]?.length ?? 0) > 3], [{ rows: 0 }, true]));
  await service.stop(soon());
  assert.equal(logged[0], 'warn retention task failed; retrying in a minute');
});

test('a locked table is no failure', async () => {
  const busy: RetentionTask = { name: 'busy', run: () => Promise.reject(new TableBusyError()) };
  const { service, done, logged } = watch('one', [busy]);
  await service.start();
  await eventually(() => assert.ok((done[0]?.length ?? 0) > 1));
  await service.stop(soon());
  assert.equal(logged[0], 'debug table is locked; retrying later');
});

test('a stopped replica hands its lease over', async () => {
  const [one, two] = [watch('one', [idle]), watch('two', [idle])];
  await one.service.start();
  await eventually(() => assert.ok((one.done[0]?.length ?? 0) > 0));
  await one.service.stop(soon());
  await two.service.start();
  await eventually(() => assert.ok((two.done[0]?.length ?? 0) > 0));
  await two.service.stop(soon());
});

test('a long round is followed by a pause of ten times its length', async () => {
  let nowMs = 0;
  let rounds = 0;
  const worker = {
    ...createTestWorker(database.db),
    clock: { now: () => new Date(), monotonicMs: () => nowMs },
  };
  const service = createRetention(worker, {
    name: 'test.retention',
    rounds: [
      {
        schedule: every(1),
        done: '',
        pausePerRound: 10,
        tasks: [
          {
            name: 'slow',
            async run() {
              rounds += 1;
              nowMs += 10_000;
              return {};
            },
          },
        ],
      },
    ],
    log: { info: () => {}, warn: () => {}, debug: () => {} },
  });
  await service.start();
  await eventually(() => assert.equal(rounds, 1));
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(rounds, 1);
  await service.stop(soon());
});

test('a batch task starts each batch where the last one ended, and stops between batches at the signal', async () => {
  const starts: (number | null)[] = [];
  const stopping = new AbortController();
  const task = batchTask<number>('rows', async (from) => {
    starts.push(from);
    if (starts.length === 5) stopping.abort();
    const at = from ?? 0;
    return { counts: { seen: 10 }, next: at === 20 ? null : at + 10 };
  });
  assert.deepEqual(await runTasks([task], forEver), { seen: 30 });
  assert.deepEqual(starts, [null, 10, 20]);
  assert.deepEqual(await runTasks([task, idle], stopping.signal), { seen: 20 });
});

test('a delete task runs until a batch is not full', async () => {
  let left = 25;
  const task = deleteTask({ name: 'rows', count: 'deleted', batchSize: 10 }, async (limit) => {
    const deleted = Math.min(limit, left);
    left -= deleted;
    return deleted;
  });
  assert.deepEqual(await runTasks([task], forEver), { deleted: 25 });
});
