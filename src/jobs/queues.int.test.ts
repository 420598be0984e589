import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../tests/support/database.ts';
import { eventually } from '../../tests/support/eventually.ts';
import { sql } from '../platform/postgres/sql.ts';
import { createWake } from '../platform/work/wake.ts';
import { queuesChannel } from './channels.ts';
import type { PushCircuit } from './domain/push-circuit.ts';
import { defaultSettings } from './domain/queue-settings.ts';
import { slowQueue } from './queue-limits.ts';
import { changeCircuit, createQueues, writeConfiguredQueues, type ConfiguredQueue } from './queues.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

const mail: ConfiguredQueue = {
  name: 'mail',
  maxRetries: 5,
  timeoutMs: 1000,
  backoff: { initialMs: 10, maxMs: 20, jitter: 0.5 },
  maxDeferrals: 7,
  keepCompleted: false,
  maxRunning: 3,
  rateLimit: { count: 10, windowMs: 60_000 },
};
const plain: ConfiguredQueue = { ...defaultSettings, name: 'plain' };

test('a queue without configuration has the default settings, in the code and in the table', async () => {
  const queues = createQueues(database.db);
  assert.deepEqual(queues.settingsOf('unknown'), defaultSettings);
  await database.db.query(sql`INSERT INTO jobs.queues (queue) VALUES ('bare')`);
  await queues.refresh();
  assert.deepEqual(queues.settingsOf('bare'), defaultSettings);
  assert.equal(queues.isLimited('bare'), false);
});

test('configured settings apply, and return to the defaults with the configuration', async () => {
  const queues = createQueues(database.db);
  await writeConfiguredQueues(database.db, [mail, plain]);
  await database.db.query(sql`UPDATE jobs.queues SET paused = true WHERE queue = 'mail'`);
  await queues.refresh();
  const { name, ...settings } = mail;
  assert.deepEqual(queues.settingsOf(name), settings);
  assert.ok(queues.isLimited('mail'));
  assert.equal(queues.isLimited('plain'), false);

  await writeConfiguredQueues(database.db, [plain]);
  await queues.refresh();
  assert.deepEqual(queues.settingsOf('mail'), defaultSettings);
  assert.equal(queues.isLimited('mail'), false);
  const [row] = await database.db.query<{ paused: boolean }>(
    sql`SELECT paused FROM jobs.queues WHERE queue = 'mail'`,
  );
  assert.equal(row?.paused, true, 'what a person said stays');
});

test('several processes can store the configured queues at once', async () => {
  await Promise.all([1, 2, 3, 4].map(() => writeConfiguredQueues(database.db, [plain, mail])));
  await writeConfiguredQueues(database.db, []);
});

const open: PushCircuit = {
  failures: 3,
  itemIds: ['a', 'b'],
  firstAtMs: 1,
  isUnreachable: true,
  openedAtMs: 2,
  reason: 'ECONNREFUSED',
  intervalMs: 1000,
  nextProbeAtMs: 3,
};

test('a circuit is deleted with its target, and kept over a restart', async () => {
  const queues = createQueues(database.db);
  const url = 'http://127.0.0.1:9/';
  const pushed: ConfiguredQueue = { ...plain, name: 'pushed', target: { url } };
  const circuitAfter = async (configured: readonly ConfiguredQueue[]): Promise<PushCircuit | null> => {
    await writeConfiguredQueues(database.db, [pushed]);
    await changeCircuit(database.db, { queue: 'pushed', url }, () => open);
    await writeConfiguredQueues(database.db, configured);
    await queues.refresh();
    return queues.circuitOf('pushed');
  };
  assert.deepEqual(await circuitAfter([pushed]), open);
  assert.equal(await circuitAfter([{ ...pushed, target: { url: 'http://127.0.0.1:10/' } }]), null);
  assert.equal(await circuitAfter([{ ...pushed, target: null }]), null);
  assert.equal(await circuitAfter([plain]), null);
});

test('a circuit that is noted while the rows are read stays', async () => {
  await database.db.query(sql`INSERT INTO jobs.queues (queue) VALUES ('noted'), ('other')`);
  const read = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const queues = createQueues({
    ...database.db,
    async query(statement) {
      const rows = await database.db.query<never>(statement);
      read.resolve();
      await goOn.promise;
      return rows;
    },
  });
  queues.noteCircuit('other', open);
  const refreshed = queues.refresh();
  await read.promise;
  queues.noteCircuit('noted', open);
  goOn.resolve();
  await refreshed;
  assert.deepEqual([queues.circuitOf('noted'), queues.circuitOf('other')], [open, null]);
  await queues.refresh();
  assert.equal(queues.circuitOf('noted'), null);
});

test('all processes are told when the configuration, the circuit or the throttle of a queue changes', async (t) => {
  const { db } = database;
  const onError = (error: unknown): void => assert.fail(String(error));
  const wake = createWake(db, { listen: true, worker: 'another', onError });
  await wake.start();
  t.after(() => wake.stop(AbortSignal.timeout(5000)));
  await eventually(async () => assert.ok(wake.isListening()));
  const isTold = async (change: () => Promise<unknown>): Promise<boolean> => {
    const told = wake.wait(queuesChannel, 10_000, AbortSignal.timeout(10_000));
    await eventually(async () => {
      const rows = await db.query(sql`SELECT 1 FROM platform.idle_workers WHERE channel = ${queuesChannel}`);
      assert.equal(rows.length, 1);
    });
    await change();
    return told;
  };
  assert.ok(await isTold(() => writeConfiguredQueues(db, [mail])));
  assert.ok(await isTold(() => changeCircuit(db, { queue: 'mail', url: 'http://mail' }, () => open)));
  assert.ok(await isTold(() => slowQueue(db, 'mail', 100)));
});
