import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import {
  claimAll,
  deadInDoubt,
  expireLeases,
  failed,
  newOrder,
  orderRow,
  orderStores,
  sent,
  settleAs,
  storyOf,
} from '../../../tests/support/outbox-orders.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { NewOrder } from '../domain/new-order.ts';
import { readSucceeded } from './check-order.ts';
import { destinationsWithWaiting } from './destinations-check.ts';
import { testAct } from '../../../tests/support/acts.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());
beforeEach(async () => {
  await database.db.query(sql`
    UPDATE outbox.outbox_orders SET destination = 'elsewhere' WHERE destination <> 'elsewhere'`);
});

const stores = (owner = 'worker-1', options: Parameters<typeof orderStores>[2] = {}) => {
  const worker = createTestWorker(database.db, owner);
  return { worker, ...orderStores(database.db, worker, options) };
};

async function add(order: Partial<NewOrder> = {}): Promise<bigint> {
  const added = await stores().orders.add(newOrder(order), 'tester');
  assert.equal(added.outcome, 'created');
  return added.id;
}

test('an order goes from queued to sending to sent, with ledger and audit log', async () => {
  const id = await add();
  const { delivery } = stores();
  const [order] = await claimAll(delivery);
  assert.equal(order?.id, id);
  assert.equal((await orderRow(database.db, id)).status, 'sending');
  assert.deepEqual(await settleAs(delivery, [order], sent), ['sent']);
  const row = await orderRow(database.db, id);
  assert.equal(row.status, 'sent');
  assert.equal(row.ledger_status, 'succeeded');
  assert.notEqual(row.expires_at, 'infinity');
  assert.equal(await storyOf(database.db, id), 'queued > sending > sent');
});

test('a retry is audited as failed, queued and sending, and costs one', async () => {
  const id = await add();
  const { delivery } = stores();
  await settleAs(delivery, await claimAll(delivery), failed);
  assert.equal((await orderRow(database.db, id)).retry_count, 1);
  await settleAs(delivery, await claimAll(delivery), sent);
  assert.equal(await storyOf(database.db, id), 'queued > sending > failed > queued > sending > sent');
});

test('a released order is as it was before the claim, including the time of its first send', async () => {
  const id = await add();
  const { delivery } = stores();
  const released = { to: 'released', reason: 'stopping', delayMs: 0 } as const;
  assert.deepEqual(await settleAs(delivery, await claimAll(delivery), released), ['queued']);
  const row = await orderRow(database.db, id);
  assert.deepEqual(
    [row.status, row.retry_count, row.first_sent_at, row.last_error],
    ['queued', 0, null, null],
  );
  await settleAs(delivery, await claimAll(delivery), failed);
  const firstSent = (await orderRow(database.db, id)).first_sent_at;
  assert.deepEqual(await settleAs(delivery, await claimAll(delivery), released), ['failed']);
  const again = await orderRow(database.db, id);
  assert.deepEqual(again.first_sent_at, firstSent);
  assert.equal(again.last_error, 'BROKER_5XX: HTTP 503');
});

test('the settle of a worker that lost its lease is dropped and counted', async () => {
  const id = await add();
  const slow = stores('slow');
  const lost = await claimAll(slow.delivery);
  await expireLeases(database.db);
  assert.equal(await slow.delivery.reap(), 1);
  assert.deepEqual(await settleAs(slow.delivery, lost, { ...failed, error: 'BROKER_5XX: stale' }), [null]);
  assert.equal(slow.worker.stale.count, 1);
  const row = await orderRow(database.db, id);
  assert.deepEqual(
    [row.status, row.retry_count, row.last_error, row.in_doubt, row.lease_lost],
    ['failed', 1, 'UNKNOWN: lease expired', true, true],
  );
});

test('an order whose lease expires without retries left dies and notifies', async () => {
  const id = await add();
  const { delivery } = stores('worker-1', { retryMax: 0 });
  await claimAll(delivery);
  await expireLeases(database.db);
  await delivery.reap();
  const row = await orderRow(database.db, id);
  assert.deepEqual([row.status, row.ledger_status, row.expires_at], ['dead', 'failed', 'infinity']);
  const told = await database.db.query(sql`
    SELECT 1 FROM platform.notify_events WHERE slice = 'outbox' AND item_id = ${String(id)}`);
  assert.equal(told.length, 1);
});

test('after a late success the order is not sent again', async () => {
  const id = await add();
  const slow = stores('slow');
  const lost = await claimAll(slow.delivery);
  await expireLeases(database.db);
  await slow.delivery.reap();
  assert.deepEqual(await settleAs(slow.delivery, lost, sent), [null]);
  assert.equal((await orderRow(database.db, id)).ledger_status, 'succeeded');
  const rescuer = stores('rescuer');
  const [again] = await claimAll(rescuer.delivery);
  assert.ok(again);
  assert.deepEqual(await readSucceeded(database.db, [again]), new Set([again.idempotencyKey]));
  assert.deepEqual(await settleAs(rescuer.delivery, [again], { to: 'known' }), ['sent']);
  assert.equal(slow.worker.stale.count, 1);
});

test('an order whose success became known meanwhile is sent, whatever the next attempt results in', async () => {
  const id = await add();
  const slow = stores('slow');
  const lost = await claimAll(slow.delivery);
  await expireLeases(database.db);
  await slow.delivery.reap();
  const rescuer = stores('rescuer');
  const again = await claimAll(rescuer.delivery);
  await settleAs(slow.delivery, lost, sent);
  assert.equal((await orderRow(database.db, id)).status, 'sending');
  assert.deepEqual(await settleAs(rescuer.delivery, again, deadInDoubt), ['sent']);
});

test('the reaper marks an order sent if the ledger records its effect', async () => {
  const id = await add();
  const slow = stores('slow');
  const lost = await claimAll(slow.delivery);
  await expireLeases(database.db);
  await slow.delivery.reap();
  await claimAll(stores('rescuer').delivery);
  await settleAs(slow.delivery, lost, sent);
  await expireLeases(database.db);
  await slow.delivery.reap();
  assert.equal((await orderRow(database.db, id)).status, 'sent');
});

test('a late success revives a dead order, but not a resolved one', async () => {
  const revived = await add();
  const resolved = await add();
  const slow = stores('slow');
  const lost = await claimAll(slow.delivery);
  await expireLeases(database.db);
  await slow.delivery.reap();
  const rescuer = stores('rescuer');
  await settleAs(rescuer.delivery, await claimAll(rescuer.delivery), deadInDoubt);
  const action = {
    id: resolved,
    actor: 'tester',
    reason: null,
    effectChecked: true,
    act: testAct('outbox:orders:skip'),
  };
  await rescuer.orders.skip(action);
  await settleAs(slow.delivery, lost, sent);
  assert.equal((await orderRow(database.db, revived)).status, 'sent');
  const row = await orderRow(database.db, resolved);
  assert.deepEqual([row.status, row.resolution, row.ledger_status], ['dead', 'skipped', 'succeeded']);
  const told = await database.db.query(sql`
    SELECT 1 FROM platform.notify_events WHERE kind = 'late_success' AND item_id = ${String(resolved)}`);
  assert.equal(told.length, 1);
});

test('a settle that is repeated after a lost answer is not a stale write', async () => {
  await add();
  const { delivery, worker } = stores();
  const orders = await claimAll(delivery);
  await settleAs(delivery, orders, sent);
  assert.deepEqual(await settleAs(delivery, orders, sent), ['sent']);
  assert.equal(worker.stale.count, 0);
});

test('a text that PostgreSQL rejects does not keep an attempt open', async () => {
  const ids = [await add(), await add(), await add()];
  const { delivery } = stores();
  const orders = await claimAll(delivery);
  const settled = await delivery.settle(
    orders.map((order) => ({
      order,
      settlement:
        order.id === ids[1]
          ? {
              to: 'sent',
              answer: { status: 200, digest: 'sha256:1', outsideId: 'x\0y\ud800' },
              isConflict: false,
            }
          : sent,
    })),
    AbortSignal.timeout(5000),
  );
  assert.deepEqual(
    settled.map(({ status }) => status),
    ['sent', 'sent', 'sent'],
  );
});

test('only due orders of the destination are claimed, oldest first', async () => {
  const first = await add();
  await add({ destination: 'other' });
  const second = await add();
  await database.db.query(sql`
    UPDATE outbox.outbox_orders SET next_attempt_at = now() + interval '1 hour' WHERE id = ${await add()}`);
  const { delivery } = stores();
  assert.deepEqual(
    (await claimAll(delivery)).map(({ id }) => id),
    [first, second],
  );
});

test('a probe claims the order with the fewest retries, and another one the next time', async () => {
  const tried = await add();
  const { delivery } = stores();
  await settleAs(delivery, await claimAll(delivery), failed);
  const fresh = await add();
  const probe = await delivery.claimProbe({ destination: 'broker', notId: null });
  assert.equal(probe?.id, fresh);
  await settleAs(delivery, [probe], { ...failed, costsRetry: false });
  assert.equal((await delivery.claimProbe({ destination: 'broker', notId: fresh }))?.id, tried);
  assert.equal((await delivery.claimProbe({ destination: 'broker', notId: fresh }))?.id, fresh);
});

test('destinations with waiting orders are found, however many orders wait', async () => {
  await add({ destination: 'zeta' });
  await add({ destination: 'alpha', orderingKey: 'k' });
  const waiting = await destinationsWithWaiting(database.db);
  assert.ok(waiting.includes('zeta') && waiting.includes('alpha'));
});

test('the fingerprint is that of the last error, and gone with it', async () => {
  const id = await add();
  const { delivery, orders } = stores('worker-1', { retryMax: 9 });
  const fingerprintOf = async (order: bigint) => (await orderRow(database.db, order)).fingerprint;
  const settle = async (settlement: Parameters<typeof settleAs>[2]) =>
    settleAs(delivery, await claimAll(delivery), settlement);
  assert.equal(await fingerprintOf(id), null);
  await settle({ ...failed, error: 'BAD_REQUEST: HTTP 404: no order 17' });
  const first = await fingerprintOf(id);
  assert.match(first ?? '', /^v2:/);
  await settle({ to: 'released', reason: 'stopping', delayMs: 0 });
  assert.equal(await fingerprintOf(id), first);
  await settle({ ...failed, error: 'BAD_REQUEST: HTTP 404: no order 18' });
  assert.equal(await fingerprintOf(id), first);
  await settle(failed);
  const another = await fingerprintOf(id);
  assert.ok(another !== null && another !== first);
  await claimAll(delivery);
  await expireLeases(database.db);
  await delivery.reap();
  assert.ok(![null, first, another].includes(await fingerprintOf(id)));
  await settle(sent);
  assert.equal(await fingerprintOf(id), null);

  const dead = await add();
  await settle(deadInDoubt);
  const cause = await fingerprintOf(dead);
  await orders.skip({
    id: dead,
    actor: 'ann',
    reason: 'known',
    effectChecked: true,
    act: testAct('outbox:orders:skip'),
  });
  assert.equal(await fingerprintOf(dead), cause);
  const cancelled = await add();
  await settle(failed);
  await orders.cancel({
    id: cancelled,
    actor: 'ann',
    reason: 'known',
    effectChecked: true,
    act: testAct('outbox:orders:skip'),
  });
  assert.equal(await fingerprintOf(cancelled), null);
});

test('a late success of a dead order takes its fingerprint away', async () => {
  const id = await add();
  const slow = stores('slow', { retryMax: 0 });
  const lost = await claimAll(slow.delivery);
  await expireLeases(database.db);
  await slow.delivery.reap();
  assert.notEqual((await orderRow(database.db, id)).fingerprint, null);
  await settleAs(slow.delivery, lost, sent);
  const { status, fingerprint } = await orderRow(database.db, id);
  assert.deepEqual([status, fingerprint], ['sent', null]);
});

test('the audit log refuses every change', async () => {
  await add();
  for (const statement of [
    sql`UPDATE outbox.outbox_audit SET actor = 'somebody else'`,
    sql`DELETE FROM outbox.outbox_audit`,
    sql`TRUNCATE outbox.outbox_audit`,
    sql`TRUNCATE outbox.outbox_audit_default`,
  ])
    await assert.rejects(database.db.query(statement), /append-only/);
});
