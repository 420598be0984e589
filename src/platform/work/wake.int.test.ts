import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { sql } from '../postgres/sql.ts';
import { createWake, notify, type Wake } from './wake.ts';

let database: TestDatabase;
let wake: Wake;
before(async () => {
  database = await createTestDatabase();
  wake = createWake(database.db, { listen: true, worker: 'tester', onError: () => {} });
  await wake.start();
  await untilListening();
});
after(async () => {
  await wake.stop(AbortSignal.timeout(5000));
  await database.drop();
});

const never = new AbortController().signal;

async function untilListening(): Promise<void> {
  const isThere = async (): Promise<boolean> => {
    const rows = await database.db.query(
      sql`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'`,
    );
    return rows.length > 0 && wake.isListening();
  };
  while (!(await isThere()));
}

async function untilIdle(channel: string): Promise<void> {
  const isIdle = async (): Promise<boolean> => {
    const rows = await database.db.query(
      sql`SELECT 1 FROM platform.idle_workers WHERE channel = ${channel} AND idle_until > clock_timestamp()`,
    );
    return rows.length > 0;
  };
  while (!(await isIdle()));
}

test('a notification wakes whoever waits on its channel, and nobody else', async () => {
  const begin = performance.now();
  let isOtherAwake = false;
  const stop = new AbortController();
  const other = wake.wait('other', 60_000, stop.signal).then(() => void (isOtherAwake = true));
  const waiting = wake.wait('mine', 60_000, never);
  await untilIdle('mine');
  await notify(database.db, 'mine');
  await waiting;
  assert.ok(performance.now() - begin < 5000);
  assert.equal(isOtherAwake, false);
  stop.abort();
  await other;
});

test('without a notification the wait ends with the poll interval', async () => {
  await wake.wait('quiet', 10, never);
});

test('a listener that lost its connection comes back by itself and looks once', async () => {
  const woken = wake.wait('mine', 60_000, never);
  await database.db.query(sql`
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND query LIKE 'LISTEN%'`);
  await woken;
  await untilListening();
});

test('a stop while it connects leaves no connection behind', async () => {
  const short = createWake(database.db, { listen: true, worker: 'short', onError: () => {} });
  await short.start();
  await short.stop(AbortSignal.timeout(5000));
  assert.equal(short.isListening(), false);
});

test('a connection that accepts LISTEN and delivers nothing does not count as listening', async () => {
  const { db } = database;
  const connect: typeof db.connect = async (onEnd) => ({
    ...(await db.connect(onEnd)),
    listen: async () => {},
  });
  const deaf = createWake({ ...db, connect }, { listen: true, worker: 'deaf', onError: () => {} });
  await deaf.start();
  for (let i = 0; i < 5; i += 1) await deaf.wait('any', 20, never);
  assert.equal(deaf.isListening(), false);
  await deaf.stop(AbortSignal.timeout(5000));
});
