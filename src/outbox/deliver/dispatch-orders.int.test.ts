import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { newOrder, orderStores } from '../../../tests/support/outbox-orders.ts';
import { createScene, sent } from '../../../tests/support/test-gates.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import { systemClock } from '../../kernel/clock.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { createSoloGate } from '../../platform/work/solo-gate.ts';
import { createSemaphore } from '../../platform/work/semaphore.ts';
import { createDispatcher, type DispatchDeps } from './dispatch-orders.ts';
import type { OpenDestination } from './senders/port.ts';
import { createSettleQueue } from './settle-queue.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

const retryMax = 5;

function destination(name: string, send: () => Promise<void>): OpenDestination {
  return {
    name,
    type: 'http',
    isInternal: false,
    policy: {
      idempotency: 'enforced',
      dedupWindowMs: 60_000,
      maxAgeMs: 60_000,
      retryMax,
      backoff: { initialMs: 1, maxMs: 1, jitter: 0 },
    },
    maxInFlight: 8,
    hasStatusUrl: false,
    timeoutMs: 1000,
    send: (orders) => orders.map(() => send().then(() => sent)),
    askStatus: null,
    isDisabled: false,
    hasSchema: false,
    flawsOf: () => [],
    close: async () => {},
  };
}

function sharedDeps(): Omit<DispatchDeps, 'gate'> {
  const { db } = database;
  const worker = createTestWorker(db);
  const { delivery } = orderStores(db, worker);
  return {
    db,
    worker,
    clock: systemClock,
    leaseMs: 60_000,
    queue: createSettleQueue(delivery.settle, systemClock),
    claims: createSemaphore(2),
    solo: createSoloGate(),
    waitForWork: (ms) => delay(Math.min(ms, 5)),
    waitForDue: (ms) => delay(Math.min(ms, 5)),
    batchSize: 4,
    parallelism: 2,
    idleSleepMs: 5,
    onClaim: () => {},
    onSettled: () => {},
    onError: (error) => assert.fail(String(error)),
    onLost: (_result, error) => assert.fail(String(error)),
  };
}

async function countOf(name: string, status: string): Promise<number> {
  const rows = await database.db.query<{ count: number }>(sql`
    SELECT count(*)::int AS count FROM outbox.outbox_orders WHERE destination = ${name} AND status = ${status}`);
  return rows[0]?.count ?? 0;
}

test('while a solo order is being sent, the process has no other order claimed', async () => {
  const { orders } = orderStores(database.db, createTestWorker(database.db));
  for (let i = 0; i < 300; i += 1) await orders.add(newOrder({ destination: 'other' }), 'tester');
  const { id } = await orders.add(newOrder({ destination: 'killer' }), 'tester');
  // Its worker was lost, and it has one attempt left.
  await database.db.query(sql`
    UPDATE outbox.outbox_orders
    SET status = 'failed', retry_count = ${retryMax}, lease_lost = true, first_sent_at = now(), next_attempt_at = now()
    WHERE id = ${id}`);
  const othersRun = Promise.withResolvers<void>();
  let othersStarted = 0;
  const claimedBeside: number[] = [];
  let startedBefore = 0;
  const other = destination('other', async () => {
    othersStarted += 1;
    if (othersStarted === 20) othersRun.resolve();
    await delay(1);
  });
  const killer = destination('killer', async () => {
    startedBefore = othersStarted;
    for (let look = 0; look < 20; look += 1) {
      claimedBeside.push(await countOf('other', 'sending'));
      await delay(2);
    }
    assert.equal(othersStarted, startedBefore);
  });

  const { newGate } = createScene();
  const shared = sharedDeps();
  const dispatchers = [
    createDispatcher({ ...shared, gate: await newGate() }, other),
    createDispatcher({ ...shared, gate: await newGate() }, killer),
  ];
  await dispatchers[0]?.start();
  await othersRun.promise;
  await dispatchers[1]?.start();
  await eventually(async () => assert.equal(await countOf('other', 'sent'), 300));
  await eventually(async () => assert.equal(await countOf('killer', 'sent'), 1));
  await Promise.all(dispatchers.map((dispatcher) => dispatcher.stop(AbortSignal.timeout(2000))));
  assert.deepEqual(
    claimedBeside,
    Array.from({ length: 20 }, () => 0),
  );
  assert.ok(startedBefore >= 20 && startedBefore < 300, `sent after ${startedBefore} others`);
});
