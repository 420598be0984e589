import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { Client } from 'pg';
import { createTestDatabase, type TestDatabase } from '../../tests/support/database.ts';
import { addInternalOrder, internalOrders } from '../../tests/support/internal-orders.ts';
import { systemClock } from '../kernel/clock.ts';
import { createUuidMaker } from '../kernel/uuid.ts';
import type { Database, Queryable } from '../platform/postgres/database.ts';
import { forgetOldNotifyEvents } from '../platform/postgres/notify-events.ts';
import { sql } from '../platform/postgres/sql.ts';
import type { Notifier } from './notifier.ts';
import { tellPeople, type Round, type TellDeps } from './tell-people.ts';

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

function tell(more: Partial<TellDeps> = {}): Promise<Round> {
  return tellPeople({
    db: database.db,
    notifiers: new Map([['_notify_ops', hook]]),
    speaker: { name: 'redrive', environment: 'test', publicUrl: undefined },
    addOrder: addInternalOrder,
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

async function told(): Promise<readonly string[]> {
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

/** As if the cool-down were over. */
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

test('the first is told at once, the rest in one summary, and then no trace is left', async () => {
  await addEvents(1);
  await tell();
  await addEvents(3);
  await tell();
  await addEvents(2);
  await tell();
  assert.deepEqual(await told(), ['_notify_ops outbox dead broker 1']);
  await passCooldown();
  await tell();
  assert.deepEqual(await told(), [
    '_notify_ops outbox dead broker 1',
    '_notify_ops outbox dead broker 5 more',
  ]);
  await passCooldown();
  await tell();
  assert.equal((await told()).length, 2);
  assert.deepEqual([await countOf('events'), await countOf('groups')], [0, 0]);
});

test('the key of an order is the id of its message', async () => {
  await addEvents(1);
  await tell();
  const [order] = await internalOrders<Body>(database.db);
  assert.equal(order?.key, `_notify_ops:${order?.request.id}`);
});

test('a round that fails in its midst leaves everything as it was, and nothing is lost or told twice', async () => {
  const notifiers = new Map([
    ['_notify_ops', hook],
    ['_notify_shop', hook],
  ]);
  await addEvents(4);
  const failing: TellDeps['addOrder'] = async (tx, order) => {
    await addInternalOrder(tx, order);
    if (order.destination === '_notify_shop') throw new Error('the process dies here');
  };
  await assert.rejects(tell({ notifiers, addOrder: failing }), /dies here/);
  assert.deepEqual([await told(), await countOf('events'), await countOf('groups')], [[], 4, 0]);
  await tell({ notifiers });
  await tell({ notifiers });
  assert.deepEqual(await told(), ['_notify_ops outbox dead broker 4', '_notify_shop outbox dead broker 4']);
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

test('wherever a round breaks off, the next one finds everything there still', async () => {
  const notifiers = new Map([
    ['_notify_ops', hook],
    ['_notify_shop', hook],
  ]);
  await addEvents(1, 'cooling');
  await addEvents(1, 'over');
  await tell({ notifiers });
  await addEvents(3, 'cooling');
  await addEvents(2, 'over');
  await tell({ notifiers });
  await database.db.query(sql`
    UPDATE platform.notify_groups SET told_at = told_at - interval '1 hour' WHERE subject = 'over'`);
  await addEvents(5, 'new');
  let broken = 0;
  for (;;) {
    const round = await tell({ notifiers, db: breakingBefore(broken) }).catch((error: Error) => {
      assert.equal(error.message, 'broken');
      return null;
    });
    if (round !== null) break;
    broken++;
  }
  assert.ok(broken > 10, 'every statement was one to break before');
  await passCooldown();
  await tell({ notifiers });
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

test('a round that was committed without our hearing of it is not repeated', async () => {
  await addEvents(2);
  const deaf: Database = {
    ...database.db,
    async transaction(work, options) {
      await database.db.transaction(work, options);
      throw new Error('the answer is lost');
    },
  };
  await assert.rejects(tell({ db: deaf }), /answer is lost/);
  await tell();
  assert.deepEqual(await told(), ['_notify_ops outbox dead broker 2']);
});

test('an event that commits after a younger one is told all the same', async () => {
  const late = new Client({ connectionString: database.url });
  await late.connect();
  try {
    await late.query('BEGIN');
    await late.query(
      `INSERT INTO platform.notify_events (slice, kind, subject, item_id, summary)
       VALUES ('jobs', 'dead_letter', 'late', '1', '')`,
    );
    await addEvents(1, 'early');
    await tell();
    assert.deepEqual(await told(), ['_notify_ops outbox dead early 1']);
    await late.query('COMMIT');
    await tell();
    assert.deepEqual(await told(), [
      '_notify_ops outbox dead early 1',
      '_notify_ops jobs dead_letter late 1',
    ]);
  } finally {
    await late.end();
  }
});

test('two replicas that believe to be alone neither lose nor double anything', async () => {
  const subjects = ['a', 'b', 'c'];
  const events = 40;
  const writing = (async () => {
    for (let i = 0; i < events; i++) await addEvents(1, subjects[i % 3]);
  })();
  const telling = async (): Promise<void> => {
    for (let i = 0; i < 20; i++) await tell({ batchSize: 5 });
  };
  await Promise.all([writing, telling(), telling(), telling()]);
  while ((await tell({ batchSize: 5 })).isFull);
  const first = await told();
  assert.equal(first.length, 3, 'each group is told once within its cool-down');
  await passCooldown();
  await tell();
  const orders = await internalOrders<Body>(database.db);
  assert.equal(
    orders.reduce((sum, { request }) => sum + request.count, 0),
    events,
  );
  assert.equal(orders.length, 6);
});

test('a storm of a hundred thousand is one message and one summary, in bounded steps', async () => {
  await addEvents(100_000);
  let rounds = 0;
  for (let isFull = true; isFull; rounds++) {
    const round = await tell({ batchSize: 2000 });
    assert.ok(round.events <= 2000);
    isFull = round.isFull;
  }
  assert.ok(rounds > 50);
  assert.equal((await told()).length, 1);
  await passCooldown();
  await tell();
  const orders = await internalOrders<Body>(database.db);
  assert.deepEqual(
    orders.map(({ request }) => [request.count, request.items.length]),
    [
      [2000, 10],
      [98_000, 10],
    ],
  );
});

test('each notifier has its own cool-down, and is told of its own slices only', async () => {
  const notifiers = new Map<string, Notifier>([
    ['_notify_ops', hook],
    ['_notify_shop', { ...hook, slices: ['jobs'], cooldownMs: 1 }],
  ]);
  await addEvents(1, 'broker', 'outbox');
  await addEvents(1, 'summarize', 'jobs');
  await tell({ notifiers });
  await addEvents(1, 'summarize', 'jobs');
  await tell({ notifiers });
  assert.deepEqual((await told()).toSorted(), [
    '_notify_ops jobs dead summarize 1',
    '_notify_ops outbox dead broker 1',
    '_notify_shop jobs dead summarize 1',
    '_notify_shop jobs dead summarize 1',
  ]);
});

test('events about orders of the system itself are dropped and told to nobody', async () => {
  await addEvents(1, '_notify_ops');
  await addEvents(1, '_saga_events');
  await tell();
  assert.deepEqual([await told(), await countOf('events')], [[], 0]);
});

test('an event of which no notifier wants to hear does not pile up', async () => {
  await addEvents(3, 'orders', 'dlq');
  await tell({ notifiers: new Map([['_notify_ops', { ...hook, slices: ['jobs'] }]]) });
  assert.deepEqual([await told(), await countOf('events'), await countOf('groups')], [[], 0, 0]);
});

test('whatever stands in an event, it is told, and those beside it as well', async () => {
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
  await tell();
  await tell();
  const orders = await internalOrders<Body>(database.db);
  assert.equal(orders.length, hostile.length + 1);
  for (const { request } of orders) {
    assert.ok(JSON.stringify(request).length < 10_000);
    assert.doesNotMatch(`${request.subject}${request.items[0]?.summary}`, /[\n\u2028\u202e]/);
  }
});

test('what is held for a notifier that is away from the configuration waits for it, for a month', async () => {
  await addEvents(1);
  await tell();
  await addEvents(1);
  await tell();
  await passCooldown();
  await tell({ notifiers: new Map([['_notify_shop', hook]]) });
  assert.equal(await countOf('groups'), 1);
  await forgetOldNotifyEvents(database.db);
  assert.equal(await countOf('groups'), 1);
  await tell();
  assert.deepEqual(await told(), [
    '_notify_ops outbox dead broker 1',
    '_notify_ops outbox dead broker 1 more',
  ]);
  await database.db.query(sql`UPDATE platform.notify_groups SET told_at = now() - interval '31 days'`);
  await forgetOldNotifyEvents(database.db);
  assert.equal(await countOf('groups'), 0);
});

test('where nobody is to be told, events are forgotten after a month, however many there are', async () => {
  await addEvents(12_000);
  await database.db.query(
    sql`UPDATE platform.notify_events SET at = now() - interval '31 days' WHERE id > 1`,
  );
  await forgetOldNotifyEvents(database.db);
  assert.equal(await countOf('events'), 1);
});
