import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { Client, Pool } from 'pg';
import { createTestDatabase, type TestDatabase } from '../../tests/support/database.ts';
import { untilSessionsEnd } from '../../tests/support/until-sessions-end.ts';
import { sql } from '../platform/postgres/sql.ts';
import { outbox, type AddedOrder, type NewOrder, type Transaction } from './index.ts';

let database: TestDatabase;
let pool: Pool;

before(async () => {
  database = await createTestDatabase();
  pool = new Pool({ connectionString: database.url, max: 25 });
});
after(async () => {
  await pool.end();
  await untilSessionsEnd(database.db);
  await database.drop();
});

const newKey = (): string => `key-${randomUUID()}`;

function orderOf(more: Partial<NewOrder> = {}): NewOrder {
  return { destination: 'broker', idempotencyKey: newKey(), request: { symbol: 'USDJPY', qty: 1 }, ...more };
}

/** Runs `work` between BEGIN and COMMIT or ROLLBACK, on a connection of the pool. */
async function inTransaction<T>(
  work: (tx: Transaction & Pick<Client, 'query'>) => Promise<T>,
  { begin = 'BEGIN', end = 'COMMIT' }: Readonly<{ begin?: string; end?: 'COMMIT' | 'ROLLBACK' }> = {},
): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query(begin);
    const result = await work(client);
    await client.query(end);
    return result;
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  } finally {
    client.release();
  }
}

const add = (order: NewOrder): Promise<AddedOrder> => inTransaction((tx) => outbox.add(tx, order));

type StoredOrder = Readonly<{
  id: string;
  status: string;
  request: string;
  digest: string;
  ordering_key: string | null;
  ordering_seq: string | null;
  trace_id: string | null;
  traceparent: string | null;
  actors: string;
}>;

async function storedOrders(key: string): Promise<readonly StoredOrder[]> {
  return database.db.query<StoredOrder>(sql`
    SELECT o.id::text, o.status, o.request_json::text AS request, o.request_digest AS digest, o.ordering_key,
           o.ordering_seq::text, o.trace_id, o.traceparent,
           (SELECT string_agg(a.actor, ',') FROM outbox.outbox_audit a WHERE a.outbox_id = o.id) AS actors
    FROM outbox.outbox_orders o JOIN outbox.idempo_ledger l ON l.outbox_id = o.id
    WHERE o.idempotency_key = ${key} AND l.idempotency_key = ${key}`);
}

async function stored(key: string): Promise<StoredOrder> {
  const [order] = await storedOrders(key);
  assert.ok(order);
  return order;
}

/** Rows of any kind that name the key. */
async function traces(key: string): Promise<number> {
  const [row] = await database.db.query<{ count: number }>(sql`
    SELECT ((SELECT count(*) FROM outbox.outbox_orders WHERE idempotency_key = ${key})
          + (SELECT count(*) FROM outbox.idempo_ledger WHERE idempotency_key = ${key})
          + (SELECT count(*) FROM outbox.outbox_audit WHERE idempotency_key = ${key}))::int AS count`);
  assert.ok(row);
  return row.count;
}

test('an order exists with the commit and not before', async () => {
  const order = orderOf({ orderingKey: 'account-7', traceId: 'trace-1' });
  const added = await inTransaction(async (tx) => {
    const result = await outbox.add(tx, order);
    assert.equal(await traces(order.idempotencyKey), 0);
    return result;
  });
  assert.equal(added.outcome, 'created');
  const row = await stored(order.idempotencyKey);
  assert.equal(BigInt(row.id), added.id);
  assert.deepEqual(
    [row.status, row.ordering_key, row.trace_id, row.traceparent, row.actors],
    ['queued', 'account-7', 'trace-1', null, new URL(database.url).username],
  );
  assert.match(row.digest, /^sha256:[0-9a-f]{64}$/);
});

test('an order that was rolled back never existed, and its key is free', async () => {
  const order = orderOf();
  const undone = await inTransaction((tx) => outbox.add(tx, order), { end: 'ROLLBACK' });
  assert.equal(undone.outcome, 'created');
  assert.equal(await traces(order.idempotencyKey), 0);
  assert.equal((await add({ ...order, request: { another: true } })).outcome, 'created');
});

test('a savepoint takes its orders back with it', async () => {
  const [kept, undone] = [orderOf(), orderOf()];
  await inTransaction(async (tx) => {
    await outbox.add(tx, kept);
    await tx.query('SAVEPOINT half');
    await outbox.add(tx, undone);
    await tx.query('ROLLBACK TO half');
  });
  assert.equal((await storedOrders(kept.idempotencyKey)).length, 1);
  assert.equal(await traces(undone.idempotencyKey), 0);
});

test('the same order again is replayed with the first id, also within one transaction', async () => {
  const order = orderOf();
  const [first, second] = await inTransaction(async (tx) => [
    await outbox.add(tx, order),
    await outbox.add(tx, order),
  ]);
  const third = await add({ ...order, request: { qty: 1, symbol: 'USDJPY', trace_id: 'another' } });
  assert.deepEqual(
    [first, second, third],
    [
      { outcome: 'created', id: first.id },
      { outcome: 'replayed', id: first.id },
      { outcome: 'replayed', id: first.id },
    ],
  );
  assert.equal((await storedOrders(order.idempotencyKey)).length, 1);
});

test('an order is the same whether the SDK, SQL or somebody with other words for it adds it', async () => {
  const request = {
    price: 0.1 + 0.2,
    '\ufb33': 1,
    '\u{1f602}': [1e21, -0, '\u2028'],
    a: { z: null, '': true },
  };
  const order = orderOf({ request, orderingKey: newKey() });
  const first = await add(order);
  const [again] = await database.db.query<{ id: bigint; outcome: string }>(sql`
    SELECT id, outcome FROM outbox.add_order(
      ${JSON.stringify(request, null, 2)}::json, ${order.idempotencyKey}, ${order.destination},
      ${order.orderingKey})`);
  assert.deepEqual([first.outcome, again], ['created', { id: first.id, outcome: 'replayed' }]);
});

test('a key of another order is a mismatch, and the transaction goes on', async () => {
  const order = orderOf();
  const first = await add(order);
  const next = orderOf();
  await inTransaction(async (tx) => {
    for (const other of [
      { ...order, request: { symbol: 'USDJPY', qty: 2 } },
      { ...order, destination: 'elsewhere' },
      { ...order, orderingKey: 'account-7' },
    ]) {
      const added = await outbox.add(tx, other);
      assert.deepEqual([added.outcome, added.id], ['mismatch', first.id]);
    }
    assert.equal((await outbox.add(tx, next)).outcome, 'created');
  });
  assert.equal((await storedOrders(next.idempotencyKey)).length, 1);
});

test('of ten transactions at once with one key one creates the order', async () => {
  const order = orderOf();
  const added = await Promise.all(Array.from({ length: 10 }, () => add(order)));
  const outcomes = added.map(({ outcome }) => outcome);
  assert.equal(outcomes.filter((outcome) => outcome === 'created').length, 1);
  assert.ok(
    outcomes.every((outcome) => outcome !== 'mismatch' && outcome !== 'refused'),
    outcomes.join(),
  );
  assert.equal((await storedOrders(order.idempotencyKey)).length, 1);
});

test('while another transaction holds the key or the ordering key it is busy, and the transaction goes on', async () => {
  const order = orderOf({ orderingKey: newKey() });
  await inTransaction(async (holder) => {
    await outbox.add(holder, order);
    await inTransaction(async (tx) => {
      const sameKey = await outbox.add(tx, { ...order, request: { another: true } });
      const sameOrderingKey = await outbox.add(tx, { ...orderOf(), orderingKey: order.orderingKey });
      assert.deepEqual([sameKey.outcome, sameKey.id], ['busy', null]);
      assert.deepEqual([sameOrderingKey.outcome, sameOrderingKey.id], ['busy', null]);
      assert.equal((await outbox.add(tx, orderOf())).outcome, 'created');
    });
  });
});

test('orders of one ordering key are numbered in the order of their commits', async () => {
  const orderingKey = newKey();
  /** What a transaction saw committed before it, and its own number. */
  const seen = await Promise.all(
    Array.from({ length: 20 }, async () => {
      for (;;) {
        const order = orderOf({ orderingKey });
        const sequence = await inTransaction(async (tx) => {
          const { outcome } = await outbox.add(tx, order);
          if (outcome === 'busy') return null;
          assert.equal(outcome, 'created');
          const { rows } = await tx.query<{ seq: string }>(
            `SELECT ordering_seq::text AS seq FROM outbox.outbox_orders
             WHERE ordering_key = $1 ORDER BY ordering_seq`,
            [orderingKey],
          );
          assert.equal(rows.at(-1)?.seq, await ownSequence(tx, order.idempotencyKey));
          return rows.map(({ seq }) => seq);
        });
        if (sequence !== null) return sequence;
      }
    }),
  );
  const all = seen.toSorted((a, b) => b.length - a.length)[0] ?? [];
  assert.equal(all.length, 20);
  for (const sequence of seen) assert.deepEqual(sequence, all.slice(0, sequence.length));
  assert.equal(new Set(seen.map(({ length }) => length)).size, 20);
});

async function ownSequence(tx: Pick<Client, 'query'>, key: string): Promise<string | undefined> {
  const { rows } = await tx.query<{ seq: string }>(
    'SELECT ordering_seq::text AS seq FROM outbox.outbox_orders WHERE idempotency_key = $1',
    [key],
  );
  return rows[0]?.seq;
}

test('a refused order leaves the transaction as it was', async () => {
  const [refused, next] = [orderOf({ request: { qty: Number.NaN } }), orderOf()];
  await inTransaction(async (tx) => {
    assert.equal((await outbox.add(tx, refused)).outcome, 'refused');
    assert.equal((await outbox.add(tx, next)).outcome, 'created');
  });
  assert.equal(await traces(refused.idempotencyKey), 0);
  assert.equal((await storedOrders(next.idempotencyKey)).length, 1);
});

test('what is stored is what JSON.stringify gives, and every value is read once', async () => {
  let reads = 0;
  class Money {
    readonly amount = 10;
    readonly currency = 'JPY';
  }
  const request = {
    price: new Money(),
    at: new Date('2026-02-20T10:30:00Z'),
    left: undefined,
    text: '"\\u0000 is six characters" 名前 👩‍👩‍👧',
    trace_id: 'trace-2',
    small: 5e-324,
    large: 1.7976931348623157e308,
    third: 1 / 3,
    none: null,
    boxed: Object('text') as unknown,
    get counted() {
      reads += 1;
      return reads;
    },
  };
  const order = orderOf({ request });
  assert.equal((await add(order)).outcome, 'created');
  assert.equal(reads, 1);
  const { request: text, trace_id } = await stored(order.idempotencyKey);
  assert.equal(trace_id, 'trace-2');
  assert.deepEqual(JSON.parse(text), { ...JSON.parse(JSON.stringify(request)), counted: 1 });
});

test('the id is a bigint whatever the service has told its pg about types', async () => {
  const int8 = 20;
  const client = new Client({
    connectionString: database.url,
    types: { getTypeParser: (oid: number) => (oid === int8 ? Number : String) as never },
  });
  await client.connect();
  try {
    await client.query("SELECT setval('outbox.outbox_orders_id_seq', 9007199254740992)");
    await client.query('BEGIN');
    const order = orderOf();
    const { id } = await outbox.add(client, order);
    await client.query('COMMIT');
    assert.equal(typeof id, 'bigint');
    assert.equal(id, BigInt((await stored(order.idempotencyKey)).id));
  } finally {
    await client.end();
  }
});

test('a client wrapped by a class of the service works', async () => {
  class UnitOfWork {
    readonly #client: Transaction;
    constructor(client: Transaction) {
      this.#client = client;
    }
    async query(text: string, values: unknown[]): Promise<{ rows: readonly unknown[]; tookMs: number }> {
      const { rows } = await this.#client.query(text, values);
      return { rows, tookMs: 0 };
    }
  }
  const order = orderOf();
  await inTransaction((tx) => outbox.add(new UnitOfWork(tx), order));
  assert.equal((await storedOrders(order.idempotencyKey)).length, 1);
});

test('a pool is not taken for a client', async () => {
  const order = orderOf();
  await assert.rejects(outbox.add(pool, order), {
    name: 'TypeError',
    message: /tx is a pool, .* pool\.connect/,
  });
  assert.equal(await traces(order.idempotencyKey), 0);
});

test('at REPEATABLE READ an order committed since the snapshot is a serialization failure, as for any row', async () => {
  const begin = 'BEGIN ISOLATION LEVEL REPEATABLE READ';
  const order = orderOf();
  const failing = inTransaction(
    async (tx) => {
      await tx.query('SELECT 1 FROM outbox.idempo_ledger LIMIT 1');
      await add(order);
      return outbox.add(tx, order);
    },
    { begin },
  );
  await assert.rejects(failing, { code: '40001' });
  const again = await inTransaction((tx) => outbox.add(tx, order), { begin });
  assert.equal(again.outcome, 'replayed');
  const fresh = await inTransaction((tx) => outbox.add(tx, orderOf({ orderingKey: newKey() })), { begin });
  assert.equal(fresh.outcome, 'created');
});

test('a database without an outbox is told in words', async () => {
  const empty = await createTestDatabase('empty');
  const client = new Client({ connectionString: empty.url });
  await client.connect();
  try {
    await assert.rejects(outbox.add(client, orderOf()), /no outbox.*redrive migrate up/);
  } finally {
    await client.end();
    await untilSessionsEnd(empty.db);
    await empty.drop();
  }
});

test('a service needs no more rights than to add', async () => {
  const role = `service_${randomUUID().replaceAll('-', '')}`;
  await inTransaction(async (tx) => {
    await tx.query(`
      CREATE ROLE ${role};
      GRANT USAGE ON SCHEMA outbox, platform TO ${role};
      GRANT INSERT, SELECT ON outbox.idempo_ledger TO ${role};
      GRANT INSERT ON outbox.outbox_orders, outbox.outbox_audit TO ${role};
      GRANT USAGE ON SEQUENCE outbox.outbox_orders_id_seq, outbox.ordering_seqs TO ${role};
      GRANT SELECT ON platform.idle_workers TO ${role};
      SET LOCAL ROLE ${role}`);
    const order = orderOf({ orderingKey: newKey() });
    assert.equal((await outbox.add(tx, order)).outcome, 'created');
    assert.equal((await outbox.add(tx, order)).outcome, 'replayed');
    await tx.query(`RESET ROLE; DROP OWNED BY ${role}; DROP ROLE ${role}`);
  });
});
