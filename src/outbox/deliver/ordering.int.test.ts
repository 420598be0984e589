import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setImmediate as soon } from 'node:timers/promises';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import {
  claimAll,
  dead,
  expireLeases,
  failed,
  newOrder,
  orderRow,
  orderStores,
  sent,
  settleAs,
} from '../../../tests/support/outbox-orders.ts';
import { eventually } from '../../../tests/support/eventually.ts';
import { createTestWorker } from '../../../tests/support/worker.ts';
import { AppError } from '../../kernel/errors.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { createWake } from '../../platform/work/wake.ts';
import { outboxChannel } from '../channel.ts';
import { testAct } from '../../../tests/support/acts.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());

const stores = (owner = 'worker-1') => orderStores(database.db, createTestWorker(database.db, owner));
let destinations = 0;

/** A new destination with `count` orders of one key. */
async function queueOf(count: number, orderingKey = 'account-1') {
  destinations += 1;
  const destination = `ordered-${destinations}`;
  const ids: bigint[] = [];
  for (let i = 0; i < count; i += 1) ids.push(await addTo(destination, orderingKey));
  return { destination, ids, claim: () => claimAll(stores().delivery, { destination, kind: 'ordered' }) };
}

async function addTo(destination: string, orderingKey: string | null): Promise<bigint> {
  const added = await stores().orders.add(newOrder({ destination, orderingKey }), 'tester');
  assert.equal(added.outcome, 'created');
  return added.id;
}

/** Another transaction was faster. */
const ignoreConflict = (error: unknown): void => {
  assert.ok(error instanceof AppError && error.kind === 'conflict', String(error));
};

const decision = (id: bigint) => ({
  id,
  actor: 'tester',
  reason: null,
  effectChecked: true,
  act: testAct('outbox:orders:skip'),
});

test('orders of one key are sent one after another, without blocking other keys', async () => {
  const { destination, ids, claim } = await queueOf(3);
  const other = await addTo(destination, 'account-2');
  const { delivery } = stores();
  const first = await claim();
  assert.deepEqual(
    first.map(({ id }) => id),
    [ids[0], other],
  );
  assert.deepEqual(await claim(), []);
  await settleAs(delivery, first, sent);
  for (const id of ids.slice(1)) {
    const next = await claim();
    assert.deepEqual(
      next.map((order) => order.id),
      [id],
    );
    await settleAs(delivery, next, sent);
  }
});

test('a failing order blocks its own key until it is sent', async () => {
  const { ids, claim } = await queueOf(2);
  const { delivery } = stores();
  await settleAs(delivery, await claim(), { ...failed, delayMs: 3_600_000 });
  assert.deepEqual(await claim(), []);
  await database.db.query(sql`UPDATE outbox.outbox_orders SET next_attempt_at = now() WHERE id = ${ids[0]}`);
  const again = await claim();
  assert.equal(again[0]?.id, ids[0]);
  await settleAs(delivery, again, sent);
  assert.equal((await claim())[0]?.id, ids[1]);
});

test('a dead order blocks its key until it is skipped', async () => {
  const { ids, claim } = await queueOf(2);
  const { delivery, orders } = stores();
  await settleAs(delivery, await claim(), dead);
  assert.deepEqual(await claim(), []);
  assert.equal((await orderRow(database.db, ids[1] ?? 0n)).held, true);
  await orders.skip(decision(ids[0] ?? 0n));
  assert.equal((await claim())[0]?.id, ids[1]);
});

test('skipping a dead order wakes a dispatcher that waits for the next order of its key', async (t) => {
  const { destination, ids, claim } = await queueOf(2);
  const { delivery, orders } = stores();
  await settleAs(delivery, await claim(), dead);
  const wake = createWake(database.db, { listen: true, worker: 'waiting', onError: () => {} });
  t.after(() => wake.stop(AbortSignal.timeout(5000)));
  await wake.start();
  await eventually(async () => assert.ok(wake.isListening()));
  const waiting = wake.wait(outboxChannel(destination), 5000, new AbortController().signal);
  await eventually(async () => {
    const announced = await database.db.query(
      sql`SELECT 1 FROM platform.idle_workers WHERE channel = ${outboxChannel(destination)}`,
    );
    assert.equal(announced.length, 1);
  });
  await orders.skip(decision(ids[0] ?? 0n));
  assert.equal(await waiting, true);
});

test('a corrected order takes the place of the dead one, before everything behind it', async () => {
  const { ids, claim } = await queueOf(3);
  const { delivery, orders } = stores();
  await settleAs(delivery, await claim(), dead);
  const corrected = await orders.supersede(decision(ids[0] ?? 0n), 'corrected-1');
  assert.equal(corrected.outcome, 'created');
  const repeated = await orders.supersede(decision(ids[0] ?? 0n), 'corrected-1');
  assert.deepEqual([repeated.outcome, repeated.id], ['replayed', corrected.id]);
  const second = orders.supersede(decision(ids[0] ?? 0n), 'corrected-2');
  await assert.rejects(second, { code: 'SYS_OUTBOX_CONFLICT' });
  const next = await claim();
  assert.deepEqual(
    next.map(({ id }) => id),
    [corrected.id],
  );
  await settleAs(delivery, next, sent);
  assert.equal((await claim())[0]?.id, ids[1]);
});

test('cancelling an order in the middle or at the head unblocks the next one', async () => {
  const { ids, claim } = await queueOf(4);
  const { delivery, orders } = stores();
  const first = await claim();
  await claim();
  await orders.cancel(decision(ids[1] ?? 0n));
  await settleAs(delivery, first, sent);
  await orders.cancel(decision(ids[2] ?? 0n));
  assert.equal((await claim())[0]?.id, ids[3]);
});

test('an order of a lost worker blocks its key until it is reaped and sent again', async () => {
  const { ids, claim } = await queueOf(2);
  await claim();
  await expireLeases(database.db);
  await stores().delivery.reap();
  assert.deepEqual(
    (await claim()).map(({ id }) => id),
    [ids[0]],
  );
});

test('a thousand orders behind a dead one are read only once', async () => {
  const { destination, claim } = await queueOf(1);
  await database.db.query(sql`
    SELECT outbox.insert_order('bulk-' || ${destination} || n, ${destination}, '{}', 'sha256:x', 'account-1', NULL, NULL, 'tester')
    FROM generate_series(1, 1000) n`);
  await settleAs(stores().delivery, await claim(), dead);
  await claim();
  const [row] = await database.db.query<{ count: bigint }>(sql`
    SELECT count(*) FROM outbox.outbox_orders WHERE destination = ${destination} AND held`);
  assert.equal(row?.count, 1000n);
});

test('an order that is committed while its predecessor is settled is not left blocked', async () => {
  // The insert sees its predecessor waiting; the settle of the predecessor does not see the insert.
  const { destination, claim } = await queueOf(1);
  const { delivery } = stores();
  const first = await claim();
  const late = newOrder({ destination, orderingKey: 'account-1' });
  await database.db.transaction(async (tx) => {
    await tx.query(sql`
      SELECT outbox.insert_order(${late.idempotencyKey}, ${destination}, '{}', 'sha256:x', 'account-1', NULL, NULL, 'tester')`);
    await settleAs(delivery, first, sent);
  });
  assert.equal((await claim())[0]?.idempotencyKey, late.idempotencyKey);
});

/** A database whose transactions have done their work and wait for `commit`. */
function pausedBeforeCommit() {
  const done = Promise.withResolvers<void>();
  const commit = Promise.withResolvers<void>();
  const db: Database = {
    ...database.db,
    transaction: (work, options) =>
      database.db.transaction(async (tx) => {
        const result = await work(tx);
        done.resolve();
        await commit.promise;
        return result;
      }, options),
  };
  return { db, done: done.promise, commit: commit.resolve };
}

/** Resolves when a transaction waits for a lock, or when the work has ended without waiting. */
async function untilItWaits(work: Promise<unknown>): Promise<void> {
  let hasEnded = false;
  void work.finally(() => (hasEnded = true));
  for (;;) {
    const waiting = await database.db.query(sql`
      SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`);
    if (waiting.length > 0 || hasEnded) return;
    await soon();
  }
}

test('settling an order while the next one is being cancelled unblocks the one after that', async () => {
  const { ids, claim } = await queueOf(3);
  const first = await claim();
  await claim();
  const paused = pausedBeforeCommit();
  const canceller = orderStores(paused.db, createTestWorker(paused.db)).orders;
  const cancelling = canceller.cancel(decision(ids[1] ?? 0n));
  await paused.done;
  const settling = settleAs(stores().delivery, first, sent);
  await untilItWaits(settling);
  paused.commit();
  await cancelling;
  assert.deepEqual(await settling, ['sent']);
  assert.equal((await claim())[0]?.id, ids[2]);
});

test('no order stays blocked by one that is being settled', async () => {
  const { destination, claim } = await queueOf(1);
  const first = await claim();
  const paused = pausedBeforeCommit();
  const settler = orderStores(paused.db, createTestWorker(paused.db)).delivery;
  const settling = settleAs(settler, first, sent);
  await paused.done;
  const next = await addTo(destination, 'account-1');
  assert.deepEqual(await claim(), []);
  assert.equal((await orderRow(database.db, next)).held, false);
  paused.commit();
  await settling;
  assert.equal((await claim())[0]?.id, next);
});

test('under random commits, claims, settles, cancels and skips, every key keeps its order and none is stuck', async () => {
  const destination = 'storm';
  const keys = Array.from({ length: 6 }, (_, i) => `storm-${i}`);
  const running = new Map<string, bigint>();
  const lastSeq = new Map<string, bigint>();
  const adding = new AbortController();
  const seqOf = async (id: bigint): Promise<bigint> => {
    const [row] = await database.db.query<{ ordering_seq: bigint }>(sql`
      SELECT ordering_seq FROM outbox.outbox_orders WHERE id = ${id}`);
    return row?.ordering_seq ?? 0n;
  };
  const add = async (i: number): Promise<void> => {
    const order = newOrder({ destination, orderingKey: keys[i % keys.length] ?? '' });
    await database.db
      .transaction(async (tx) => {
        const [row] = await tx.query<{ outcome: string }>(sql`
          SELECT outcome FROM outbox.insert_order(${order.idempotencyKey}, ${destination}, '{}', 'sha256:x',
            ${order.orderingKey}, NULL, NULL, 'tester')`);
        for (let turn = 0; turn < i % 7; turn += 1) await soon();
        if (i % 11 === 0 || row?.outcome !== 'created') throw new Error('rolled back');
      })
      .catch(() => {});
  };
  const work = async (owner: string): Promise<void> => {
    const { delivery, orders } = stores(owner);
    for (let idle = 0; idle < 40;) {
      const claimed = await claimAll(delivery, { destination, kind: 'ordered', limit: 4 });
      if (claimed.length === 0) {
        if (adding.signal.aborted) idle += 1;
        await soon();
        continue;
      }
      idle = 0;
      for (const order of claimed) {
        const key = order.orderingKey ?? '';
        assert.equal(running.has(key), false, `two of ${key} at once`);
        running.set(key, order.id);
        const seq = await seqOf(order.id);
        assert.ok(seq >= (lastSeq.get(key) ?? 0n), `${key} out of order`);
        lastSeq.set(key, seq);
      }
      const ends = [sent, sent, sent, failed, dead] as const;
      for (const order of claimed) {
        const end = ends[Number(order.id % 5n)] ?? sent;
        running.delete(order.orderingKey ?? '');
        await settleAs(delivery, [order], end === failed && order.retryCount > 1 ? sent : end);
        if (end === dead) void orders.skip(decision(order.id)).catch(ignoreConflict);
      }
    }
  };
  const cancelSome = async (): Promise<void> => {
    while (!adding.signal.aborted) {
      const [row] = await database.db.query<{ id: bigint }>(sql`
        SELECT id FROM outbox.outbox_orders
        WHERE destination = ${destination} AND status IN ('queued', 'failed') ORDER BY random() LIMIT 1`);
      if (row !== undefined) await stores().orders.cancel(decision(row.id)).catch(ignoreConflict);
      await soon();
    }
  };
  const working = Promise.all([work('w1'), work('w2'), work('w3'), cancelSome()]);
  for (let i = 0; i < 400; i += 8) await Promise.all(Array.from({ length: 8 }, (_, n) => add(i + n)));
  adding.abort();
  await working;
  const open = await database.db.query(sql`
    SELECT id, status, held, ordering_key FROM outbox.outbox_orders
    WHERE destination = ${destination} AND status NOT IN ('sent') AND resolution IS NULL`);
  assert.deepEqual(open, []);
});
