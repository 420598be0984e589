import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import {
  claimAll,
  dead,
  deadInDoubt,
  expireLeases,
  orderRow,
  orderStores,
  sent,
  settleAs,
  storyOf,
} from '../../../tests/support/outbox-orders.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { addInternalOrders, destinationsWithDead, unsentKeys } from '../index.ts';
import { testAct } from '../../../tests/support/acts.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

const destination = '_notify_ops';
const stores = () => orderStores(database.db, createTestWorker(database.db));

async function addAndClaim(id: string) {
  await database.db.transaction((tx) =>
    addInternalOrders(tx, [{ destination, id, request: { text: 'hello' } }]),
  );
  const [order] = await claimAll(stores().delivery, { destination });
  assert.ok(order);
  return order;
}

test('an internal order is sent like any other, without a ledger row', async () => {
  const order = await addAndClaim('0190a000-0000-7000-8000-000000000001');
  assert.equal(order.idempotencyKey, '_notify_ops:0190a000-0000-7000-8000-000000000001');
  assert.deepEqual(await settleAs(stores().delivery, [order], sent), ['sent']);
  assert.equal((await orderRow(database.db, order.id)).ledger_status, null);
  assert.equal(await storyOf(database.db, order.id), 'queued > sending > sent');
});

test('a dead internal order notifies nobody, since the notification itself may have failed', async () => {
  const order = await addAndClaim('0190a000-0000-7000-8000-000000000002');
  assert.deepEqual(await settleAs(stores().delivery, [order], dead), ['dead']);
  const told = await database.db.query(sql`
    SELECT 1 FROM platform.notify_events WHERE slice = 'outbox' AND item_id = ${String(order.id)}`);
  assert.deepEqual(told, []);
  assert.deepEqual(await destinationsWithDead(database.db, ['_notify_shop', destination]), [destination]);
  const action = {
    id: order.id,
    actor: 'tester',
    reason: null,
    effectChecked: false,
    act: testAct('outbox:orders:skip'),
  };
  await stores().orders.skip(action);
  assert.deepEqual(await destinationsWithDead(database.db, [destination]), []);
});

test('a late success of an internal order notifies nobody', async () => {
  const lost = await addAndClaim('0190a000-0000-7000-8000-000000000003');
  await expireLeases(database.db);
  await stores().delivery.reap();
  const again = await claimAll(stores().delivery, { destination });
  assert.deepEqual(await settleAs(stores().delivery, again, deadInDoubt), ['dead']);
  const action = {
    id: lost.id,
    actor: 'tester',
    reason: null,
    effectChecked: true,
    act: testAct('outbox:orders:skip'),
  };
  await stores().orders.skip(action);
  await settleAs(stores().delivery, [lost], sent);
  const [noted] = await database.db.query(sql`
    SELECT 1 FROM outbox.outbox_audit WHERE outbox_id = ${lost.id} AND reason = 'late success'`);
  assert.ok(noted, 'it has been noticed');
  assert.deepEqual(await database.db.query(sql`SELECT 1 FROM platform.notify_events`), []);
});

test('the reaper respects the retry limit of a destination', async () => {
  const { delivery } = orderStores(database.db, createTestWorker(database.db), {
    retryMax: 0,
    ownRetryMax: new Map([[destination, 2]]),
  });
  const { id } = await addAndClaim('0190a000-0000-7000-8000-000000000004');
  const statuses: string[] = [];
  for (let lost = 1; lost <= 3; lost++) {
    await expireLeases(database.db);
    await delivery.reap();
    statuses.push((await orderRow(database.db, id)).status);
    await claimAll(delivery, { destination, retryMax: 9 });
  }
  assert.deepEqual(statuses, ['failed', 'failed', 'dead']);
});

test('a rolled back internal order leaves no trace', async () => {
  await assert.rejects(
    database.db.transaction(async (tx) => {
      await addInternalOrders(tx, [{ destination, id: 'rolled-back', request: {}, orderingKey: 'saga-1' }]);
      throw new Error('rolled back');
    }),
    /rolled back/,
  );
  assert.deepEqual(await claimAll(stores().delivery, { destination, kind: 'ordered' }), []);
});

test('parallel lists keep their order within each key, also if they name the keys in opposite orders', async () => {
  const keys = ['saga-a', 'saga-b', 'saga-c'];
  const listOf = (round: string, order: readonly string[]) =>
    order.flatMap((orderingKey) =>
      [1, 2, 3].map((n) => ({
        destination: '_events',
        id: `${round}-${orderingKey}-${n}`,
        request: { round, n },
        orderingKey,
      })),
    );
  await Promise.all(
    Array.from({ length: 8 }, (_, i) =>
      database.db.transaction((tx) =>
        addInternalOrders(tx, listOf(`round-${i}`, i % 2 === 0 ? keys : keys.toReversed())),
      ),
    ),
  );
  const rows = await database.db.query<{
    ordering_key: string;
    round: string;
    n: number;
    audited: number;
  }>(sql`
    SELECT o.ordering_key, o.request_json ->> 'round' AS round, (o.request_json ->> 'n')::int AS n,
           (SELECT count(*)::int FROM outbox.outbox_audit a WHERE a.outbox_id = o.id AND a.actor = 'system') AS audited
    FROM outbox.outbox_orders o WHERE o.destination = '_events' ORDER BY o.ordering_seq`);
  assert.equal(rows.length, 72);
  assert.ok(rows.every(({ audited }) => audited === 1));
  for (const key of keys) {
    const ofKey = rows.filter((row) => row.ordering_key === key);
    for (let i = 0; i < ofKey.length; i += 3) {
      const three = ofKey.slice(i, i + 3);
      assert.deepEqual(
        three.map(({ n }) => n),
        [1, 2, 3],
      );
      assert.equal(new Set(three.map(({ round }) => round)).size, 1, 'nobody comes in between');
    }
  }
});

test('a transaction that adds to an ordering key waits for the previous one, so sequence numbers commit in order', async () => {
  const order = (id: string) => ({ destination: '_late', id, request: {}, orderingKey: 'one' });
  const added = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const first = database.db.transaction(async (tx) => {
    await addInternalOrders(tx, [order('first')]);
    added.resolve();
    await goOn.promise;
  });
  await added.promise;
  const impatient = database.db.transaction(async (tx) => {
    await tx.query(sql`SET LOCAL lock_timeout = '100ms'`);
    await addInternalOrders(tx, [order('second')]);
  });
  await assert.rejects(impatient, { code: '55P03' });
  goOn.resolve();
  await first;
});

test('a key is unsent until all its orders are sent or resolved', async () => {
  const add = (id: string, orderingKey: string) =>
    database.db.transaction((tx) =>
      addInternalOrders(tx, [{ destination: '_unsent', id, request: {}, orderingKey }]),
    );
  for (const key of ['sent', 'dead', 'skipped', 'waiting']) await add(key, key);
  const isUnsent = async (): Promise<readonly string[]> =>
    [
      ...(await unsentKeys(database.db, '_unsent', ['sent', 'dead', 'skipped', 'waiting', 'none'])),
    ].toSorted();
  assert.deepEqual(await isUnsent(), ['dead', 'sent', 'skipped', 'waiting']);
  const claimed = await claimAll(stores().delivery, { destination: '_unsent', kind: 'ordered' });
  const of = (key: string) => claimed.filter(({ orderingKey }) => orderingKey === key);
  await settleAs(stores().delivery, of('sent'), sent);
  await settleAs(stores().delivery, [...of('dead'), ...of('skipped')], dead);
  const [skipped] = of('skipped');
  assert.ok(skipped);
  await stores().orders.skip({
    id: skipped.id,
    actor: 'tester',
    reason: null,
    effectChecked: false,
    act: testAct('outbox:orders:skip'),
  });
  assert.deepEqual(await isUnsent(), ['dead', 'waiting']);
  assert.deepEqual(await unsentKeys(database.db, '_other', ['waiting']), new Set());
});
