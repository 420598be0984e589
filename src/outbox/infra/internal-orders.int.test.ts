import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import {
  claimAll,
  dead,
  orderRow,
  orderStores,
  sent,
  settleAs,
  storyOf,
} from '../../../tests/support/outbox-orders.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { addInternalOrder } from '../index.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

const destination = '_notify_1';
const stores = () => orderStores(database.db, createTestWorker(database.db));

async function addAndClaim(id: string) {
  await database.db.transaction((tx) =>
    addInternalOrder(tx, { destination, id, request: { text: 'hello' } }),
  );
  const [order] = await claimAll(stores().delivery, { destination });
  assert.ok(order);
  return order;
}

test('an order of the system itself is sent like any other, without a ledger', async () => {
  const order = await addAndClaim('0190a000-0000-7000-8000-000000000001');
  assert.equal(order.idempotencyKey, '_notify_1:0190a000-0000-7000-8000-000000000001');
  assert.deepEqual(await settleAs(stores().delivery, [order], sent), ['sent']);
  assert.equal((await orderRow(database.db, order.id)).ledger_status, null);
  assert.equal(await storyOf(database.db, order.id), 'queued > sending > sent');
});

test('an order of the system itself that is dead tells nobody: telling may be what failed', async () => {
  const order = await addAndClaim('0190a000-0000-7000-8000-000000000002');
  assert.deepEqual(await settleAs(stores().delivery, [order], dead), ['dead']);
  const told = await database.db.query(sql`
    SELECT 1 FROM platform.notify_events WHERE slice = 'outbox' AND item_id = ${String(order.id)}`);
  assert.deepEqual(told, []);
});

test('an order of the system itself that is rolled back was never there', async () => {
  await assert.rejects(
    database.db.transaction(async (tx) => {
      await addInternalOrder(tx, { destination, id: 'rolled-back', request: {}, orderingKey: 'saga-1' });
      throw new Error('rolled back');
    }),
    /rolled back/,
  );
  assert.deepEqual(await claimAll(stores().delivery, { destination, lane: 'keyed' }), []);
});
