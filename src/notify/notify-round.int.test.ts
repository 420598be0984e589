import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { Client } from 'pg';
import { createTestDatabase, type TestDatabase } from '../../tests/support/database.ts';
import { addInternalOrder, internalOrders } from '../../tests/support/internal-orders.ts';
import { systemClock } from '../kernel/clock.ts';
import { noMasks } from '../kernel/protect/protection.ts';
import { createUuidMaker } from '../kernel/uuid.ts';
import type { Database, Queryable } from '../platform/postgres/database.ts';
import { platformRetention } from '../platform/work/platform-retention.ts';
import { runTasks } from '../platform/work/retention-tasks.ts';
import { sql } from '../platform/postgres/sql.ts';
import type { Notifier } from './notifier.ts';
import { runRound, type Round, type RoundDeps } from './notify-round.ts';

let database: TestDatabase;
beforeEach(async () => void (database = await createTestDatabase()));
afterEach(() => database.drop());

const hourMs = 3_600_000;

const hook: Notifier = {
  name: 'ops',
  type: 'webhook',
  url: 'http://127.0.0.1:1/hook',
  secret: () => 'hunter2hunter2',
  cooldownMs: hourMs,
  slices: ['dlq', 'outbox', 'jobs', 'saga'],
  timeoutMs: 1000,
};

const makeId = createUuidMaker(systemClock);

function runOnce(more: Partial<RoundDeps> = {}): Promise<Round> {
  return runRound({
    db: database.db,
    notifiers: new Map([['_notify_ops', hook]]),
    source: { name: 'redrive', environment: 'test', publicUrl: undefined },
    addOrder: addInternalOrder,
    masksOf: () => noMasks,
    makeId,
    ...more,
  });
}

type Body = Readonly<{
  id: string;
  slice: string;
  kind: string;
  subject: string;
  is_summary: boolean;
  count: number;
  items: readonly Readonly<{ id: string; summary: string }>[];
}>;

async function sent(): Promise<readonly string[]> {
  const orders = await internalOrders<Body>(database.db);
  return orders.map(
    ({ destination, request }) =>
      `${destination} ${request.slice} ${request.kind} ${request.subject} ${request.count}${request.is_summary ? ' more' : ''}`,
  );
}

async function addEvents(count: number, subject = 'broker', slice = 'outbox'): Promise<void> {
  await database.db.query(sql`
    INSERT INTO platform.notify_events (slice, kind, subject, item_id, summary)
    SELECT ${slice}, 'dead', ${subject}, n::text, 'HTTP 400' FROM generate_series(1, ${count}) n`);
}

/** As if the cooldown were over. */
async function passCooldown(): Promise<void> {
  await database.db.query(sql`UPDATE platform.notify_groups SET told_at = told_at - interval '1 hour'`);
}

async function countOf(table: 'events' | 'groups'): Promise<number> {
  const [row] = await database.db.query<{ count: number }>(
    table === 'events'
      ? sql`SELECT count(*)::int AS count FROM platform.notify_events`
      : sql`SELECT count(*)::int AS count FROM platform.notify_groups`,
  );
  return row?.count ?? assert.fail();
}

test('the first event is sent at once, the rest in one summary, and then the group is deleted', async () => {
  await addEvents(1);
  await runOnce();
  await addEvents(3);
  await runOnce();
  await addEvents(2);
  await runOnce();
  assert.deepEqual(await sent(), ['_notify_ops outbox dead broker 1']);
  await passCooldown();
  await runOnce();
  assert.deepEqual(await sent(), [
    '_notify_ops outbox dead broker 1',
    '_notify_ops outbox dead broker 5 more',
  ]);
  await passCooldown();
  await runOnce();
  assert.equal((await sent()).length, 2);
  assert.deepEqual([await countOf('events'), await countOf('groups')], [0, 0]);
});

test('the idempotency key of an order is the id of its message', async () => {
  await addEvents(1);
  await runOnce();
  const [order] = await internalOrders<Body>(database.db);
  assert.equal(order?.key, `_notify_ops:${order?.request.id}`);
});

test('a round that fails half-way changes nothing, and nothing is lost or sent twice', async () => {
  const notifiers = new Map([
    ['_notify_ops', hook],
    ['_notify_shop', hook],
  ]);
  await addEvents(4);
  const failing: RoundDeps['addOrder'] = async (tx, order) => {
    await addInternalOrder(tx, order);
    if (order.destination === '_notify_shop') throw new Error('the process dies here');
  };
  await assert.rejects(runOnce({ notifiers, addOrder: failing }), /dies here/);
  assert.deepEqual([await sent(), await countOf('events'), await countOf('groups')], [[], 4, 0]);
  await runOnce({ notifiers });
  await runOnce({ notifiers });
  assert.deepEqual(await sent(), ['_notify_ops outbox dead broker 4', '_notify_shop outbox dead broker 4']);
});

/** The connection breaks before the n-th statement of a transaction. */
function breakingBefore(nth: number): Database {
  const { db } = database;
  return {
    ...db,
    transaction(work, options) {
      let statements = 0;
      const once: TransactionWork = (tx) =>
        work({
          query(statement) {
            if (statements++ === nth) throw new Error('broken');
            return tx.query(statement);
          },
        }) as Promise<never>;
      return db.transaction(once, options);
    },
  };
}

type TransactionWork = (tx: Queryable) => Promise<never>;

test('a round may be interrupted after any statement, and the next one finds everything as before', async () => {
  const notifiers = new Map([
    ['_notify_ops', hook],
    ['_notify_shop', hook],
  ]);
  await addEvents(1, 'cooling');
  await addEvents(1, 'over');
  await runOnce({ notifiers });
  await addEvents(3, 'cooling');
  await addEvents(2, 'over');
  await runOnce({ notifiers });
  await database.db.query(sql`
    UPDATE platform.notify_groups SET told_at = told_at - interval '1 hour' WHERE subject = 'over'`);
  await addEvents(5, 'new');
  let broken = 0;
  for (;;) {
    const round = await runOnce({ notifiers, db: breakingBefore(broken) }).catch((error: Error) => {
      assert.equal(error.message, 'broken');
      return null;
    });
    if (round !== null) break;
    broken++;
  }
  assert.ok(broken > 10, 'every statement was one to break before');
  await passCooldown();
  await runOnce({ notifiers });
  const counts = Map.groupBy(await internalOrders<Body>(database.db), ({ destination }) => destination);
  for (const orders of counts.values())
    assert.deepEqual(orders.map(({ request }) => `${request.subject} ${request.count}`).toSorted(), [
      'cooling 1',
      'cooling 3',
      'new 5',
      'over 1',
      'over 2',
    ]);
  assert.equal(counts.size, 2);
});

test('a round whose commit was not acknowledged is not repeated', async () => {
  await addEvents(2);
  const deaf: Database = {
    ...database.db,
    async transaction(work, options) {
      await database.db.transaction(work, options);
      throw new Error('the answer is lost');
    },
  };
  await assert.rejects(runOnce({ db: deaf }), /answer is lost/);
  await runOnce();
  assert.deepEqual(await sent(), ['_notify_ops outbox dead broker 2']);
});

test('an event that is committed after a newer one is sent as well', async () => {
  const late = new Client({ connectionString: database.url });
  await late.connect();
  try {
    await late.query('BEGIN');
    await late.query(
      `INSERT INTO platform.notify_events (slice, kind, subject, item_id, summary)
       VALUES ('jobs', 'dead_letter', 'late', '1', '')`,
    );
    await addEvents(1, 'early');
    await runOnce();
    assert.deepEqual(await sent(), ['_notify_ops outbox dead early 1']);
    await late.query('COMMIT');
    await runOnce();
    assert.deepEqual(await sent(), [
      '_notify_ops outbox dead early 1',
      '_notify_ops jobs dead_letter late 1',
    ]);
  } finally {
    await late.end();
  }
});

test('concurrent replicas neither lose nor duplicate a message', async () => {
  const subjects = ['a', 'b', 'c'];
  const events = 40;
  const writing = (async () => {
    for (let i = 0; i < events; i++) await addEvents(1, subjects[i % 3]);
  })();
  const round = async (): Promise<void> => {
    for (let i = 0; i < 20; i++) await runOnce({ batchSize: 5 });
  };
  await Promise.all([writing, round(), round(), round()]);
  while ((await runOnce({ batchSize: 5 })).isFull);
  const first = await sent();
  assert.equal(first.length, 3, 'each group is sent once within its cooldown');
  await passCooldown();
  await runOnce();
  const orders = await internalOrders<Body>(database.db);
  assert.equal(
    orders.reduce((sum, { request }) => sum + request.count, 0),
    events,
  );
  assert.equal(orders.length, 6);
});

test('a hundred thousand events are one message and one summary, in bounded batches', async () => {
  await addEvents(100_000);
  let rounds = 0;
  for (let isFull = true; isFull; rounds++) {
    const round = await runOnce({ batchSize: 2000 });
    assert.ok(round.events <= 2000);
    isFull = round.isFull;
  }
  assert.ok(rounds > 50);
  assert.equal((await sent()).length, 1);
  await passCooldown();
  await runOnce();
  const orders = await internalOrders<Body>(database.db);
  assert.deepEqual(
    orders.map(({ request }) => [request.count, request.items.length]),
    [
      [2000, 10],
      [98_000, 10],
    ],
  );
});

test('each notifier has its own cooldown, and gets events of its own slices only', async () => {
  const notifiers = new Map<string, Notifier>([
    ['_notify_ops', hook],
    ['_notify_shop', { ...hook, slices: ['jobs'], cooldownMs: 1 }],
  ]);
  await addEvents(1, 'broker', 'outbox');
  await addEvents(1, 'summarize', 'jobs');
  await runOnce({ notifiers });
  await addEvents(1, 'summarize', 'jobs');
  await runOnce({ notifiers });
  assert.deepEqual((await sent()).toSorted(), [
    '_notify_ops jobs dead summarize 1',
    '_notify_ops outbox dead broker 1',
    '_notify_shop jobs dead summarize 1',
    '_notify_shop jobs dead summarize 1',
  ]);
});

test('events about internal orders are dropped', async () => {
  await addEvents(1, '_notify_ops');
  await addEvents(1, '_saga_events');
  await runOnce();
  assert.deepEqual([await sent(), await countOf('events')], [[], 0]);
});

test('events that no notifier wants do not pile up', async () => {
  await addEvents(3, 'orders', 'dlq');
  await runOnce({ notifiers: new Map([['_notify_ops', { ...hook, slices: ['jobs'] }]]) });
  assert.deepEqual([await sent(), await countOf('events'), await countOf('groups')], [[], 0, 0]);
});

test('an event is sent whatever it contains, and so are the others of its round', async () => {
  const hostile = [
    'x'.repeat(100_000),
    '"}\u2028\n\u202e<!channel>',
    '😀'.repeat(5000),
    '',
    "'; DROP TABLE x",
  ];
  for (const text of hostile)
    await database.db.query(sql`
      INSERT INTO platform.notify_events (slice, kind, subject, item_id, summary)
      VALUES ('outbox', 'dead', ${text}, ${text}, ${text})`);
  await addEvents(1);
  await runOnce();
  await runOnce();
  const orders = await internalOrders<Body>(database.db);
  assert.equal(orders.length, hostile.length + 1);
  for (const { request } of orders) {
    assert.ok(JSON.stringify(request).length < 10_000);
    assert.doesNotMatch(`${request.subject}${request.items[0]?.summary}`, /[\n\u2028\u202e]/);
  }
});

test('events that are pending for a removed notifier wait for it for a month', async () => {
  await addEvents(1);
  await runOnce();
  await addEvents(1);
  await runOnce();
  await passCooldown();
  await runOnce({ notifiers: new Map([['_notify_shop', hook]]) });
  assert.equal(await countOf('groups'), 1);
  await runTasks(platformRetention(database.db), new AbortController().signal);
  assert.equal(await countOf('groups'), 1);
  await runOnce();
  assert.deepEqual(await sent(), [
    '_notify_ops outbox dead broker 1',
    '_notify_ops outbox dead broker 1 more',
  ]);
  await database.db.query(sql`UPDATE platform.notify_groups SET told_at = now() - interval '31 days'`);
  await runTasks(platformRetention(database.db), new AbortController().signal);
  assert.equal(await countOf('groups'), 0);
});

test('without a notifier, events are deleted after a month, however many there are', async () => {
  await addEvents(12_000);
  await database.db.query(
    sql`UPDATE platform.notify_events SET at = now() - interval '31 days' WHERE id > 1`,
  );
  await runTasks(platformRetention(database.db), new AbortController().signal);
  assert.equal(await countOf('events'), 1);
});
