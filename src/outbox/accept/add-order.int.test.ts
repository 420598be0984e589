import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import * as fc from 'fast-check';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { jsonTexts } from '../../../tests/support/json-texts.ts';
import { parseExactJson } from '../../kernel/exact-json.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { isDestinationName } from '../domain/destination-name.ts';
import { isIdempotencyKey } from '../domain/idempotency-key.ts';
import { requestDigest } from '../domain/request-digest.ts';

let database: TestDatabase;
before(async () => {
  database = await createTestDatabase();
});
after(() => database.drop());

type Added = Readonly<{ id: bigint | null; outcome: string }>;

type Asked = Readonly<{
  request: string | null;
  key: string | null;
  destination: string | null;
  orderingKey: string | null;
  traceId: string | null;
}>;

async function addOrder(db: Queryable, asked: Partial<Asked> = {}): Promise<Added> {
  const { request, key, destination, orderingKey, traceId } = {
    request: '{"qty":10000}',
    key: randomUUID(),
    destination: 'broker',
    orderingKey: null,
    traceId: null,
    ...asked,
  };
  const rows = await db.query<Added>(sql`
    SELECT id, outcome
    FROM outbox.add_order(${request}::json, ${key}, ${destination}, ${orderingKey}, ${traceId})`);
  assert(rows[0] !== undefined);
  return rows[0];
}

type Stored = Readonly<{
  request: string;
  digest: string;
  status: string;
  trace_id: string | null;
  ordering_key: string | null;
  has_seq: boolean;
  by_session_user: readonly boolean[];
  ledger: readonly string[];
}>;

async function stored(id: bigint | null): Promise<Stored> {
  const rows = await database.db.query<Stored>(sql`
    SELECT o.request_json::text AS request, o.request_digest AS digest, o.status, o.trace_id, o.ordering_key,
           o.ordering_seq IS NOT NULL AS has_seq,
           ARRAY(SELECT a.actor = session_user FROM outbox.outbox_audit a WHERE a.outbox_id = o.id) AS by_session_user,
           ARRAY(SELECT l.request_digest FROM outbox.idempo_ledger l
                 WHERE l.outbox_id = o.id AND l.idempotency_key = o.idempotency_key) AS ledger
    FROM outbox.outbox_orders o WHERE o.id = ${id}`);
  assert(rows[0] !== undefined);
  return rows[0];
}

async function countOrders(db: Queryable = database.db): Promise<bigint> {
  const rows = await db.query<{ count: bigint }>(sql`SELECT COUNT(*) AS count FROM outbox.outbox_orders`);
  return rows[0]?.count ?? 0n;
}

test('an order is stored with ledger and audit rows, and has the same digest as in the API', async () => {
  const { id, outcome } = await addOrder(database.db, {
    request:
      '{"symbol":"USDJPY", "qty":1e4, "trace_id":"t-1", "idempotency_key":"own", "meta":{"b":2.50,"a":[]}}',
    orderingKey: 'USDJPY',
  });
  assert.equal(outcome, 'created');
  const request = { symbol: 'USDJPY', qty: 10_000, meta: { a: [], b: 2.5 } };
  const digest = requestDigest({ destination: 'broker', orderingKey: 'USDJPY', request });
  const { request: json, ...row } = await stored(id);
  assert.deepEqual(row, {
    digest,
    status: 'queued',
    trace_id: 't-1',
    ordering_key: 'USDJPY',
    has_seq: true,
    by_session_user: [true],
    ledger: [digest],
  });
  assert.deepEqual(JSON.parse(json), { ...request, trace_id: 't-1', idempotency_key: 'own' });
});

test('it takes named arguments and requires only a request, a key and a destination', async () => {
  const rows = await database.db.query<Added>(sql`
    SELECT outcome FROM outbox.add_order(
      destination => 'broker', idempotency_key => 'by-names', request => '{}')`);
  assert.deepEqual(rows, [{ outcome: 'created' }]);
});

test('the same order in another notation is replayed and stored once', async () => {
  const key = randomUUID();
  const first = await addOrder(database.db, { key, request: '{"qty":10000,"side":"BUY"}' });
  const count = await countOrders();
  for (const request of [
    '{"qty":10000.0,"side":"BUY"}',
    String.raw`{ "side":"\u0042UY", "qty":1E+4 }`,
    '{"qty":10000,"side":"BUY","trace_id":"another"}',
  ])
    assert.deepEqual(await addOrder(database.db, { key, request }), { id: first.id, outcome: 'replayed' });
  assert.equal(await countOrders(), count);
});

test('another order with the same key is a mismatch and changes nothing', async () => {
  const key = randomUUID();
  const first = await addOrder(database.db, { key });
  const before = await stored(first.id);
  for (const other of [{ request: '{"qty":10001}' }, { destination: 'other' }, { orderingKey: 'USDJPY' }])
    assert.deepEqual(await addOrder(database.db, { key, ...other }), { id: first.id, outcome: 'mismatch' });
  assert.deepEqual(await stored(first.id), before);
});

const refused: readonly Partial<Asked>[] = [
  ...[null, '', 'seven77', 'a'.repeat(65), 'with a blank', 'ünicode-key', 'line-end\n', 'tab\tbed-key'].map(
    (key) => ({
      key,
    }),
  ),
  ...[
    null,
    '',
    '_saga_events',
    '_',
    'd'.repeat(101),
    'Bad Name',
    'Broker',
    '1st',
    'a/b',
    'broker\n',
    'ä',
  ].map((destination) => ({ destination })),
  ...['', 'o'.repeat(256)].map((orderingKey) => ({ orderingKey })),
  { traceId: 't'.repeat(256) },
  ...[null, '[]', '7', '"text"', 'null', '{"a":1,"a":2}', '{"a":1e400}', '{"__proto__":1}'].map(
    (request) => ({
      request,
    }),
  ),
  { request: String.raw`{"a":"\u0000"}` },
  { request: String.raw`{"a":"\ud800"}` },
  { request: `{"a":${'['.repeat(512)}${']'.repeat(512)}}` },
];

test('invalid orders are refused, and the transaction can continue', async () => {
  const count = await countOrders();
  await database.db.transaction(async (tx) => {
    for (const asked of refused)
      assert.deepEqual(await addOrder(tx, asked), { id: null, outcome: 'refused' }, JSON.stringify(asked));
    assert.equal((await addOrder(tx)).outcome, 'created');
  });
  assert.equal(await countOrders(), count + 1n);
});

test('orders just within the limits are stored', async () => {
  for (const asked of [
    { key: 'eight!~8' },
    { key: `${randomUUID()}${'~'.repeat(28)}` },
    { destination: 'd'.repeat(100) },
    { destination: 'a1_b.c-d', orderingKey: '\u{1f600}'.repeat(255) },
    { traceId: '\u{1f600}'.repeat(255) },
    { request: `{"a":${'['.repeat(511)}${']'.repeat(511)}}` },
    { request: `{"trace_id":"${'t'.repeat(255)}"}` },
  ])
    assert.equal((await addOrder(database.db, asked)).outcome, 'created', JSON.stringify(asked).slice(0, 80));
});

test('a given trace id overrides that of the request, which counts if it is a string', async () => {
  const traceOf = async (asked: Partial<Asked>): Promise<string | null> =>
    (await stored((await addOrder(database.db, asked)).id)).trace_id;
  assert.equal(await traceOf({ request: '{"trace_id":"own"}', traceId: 'named' }), 'named');
  assert.equal(await traceOf({ request: `{"trace_id":"${'t'.repeat(256)}"}`, traceId: 'named' }), 'named');
  assert.equal(await traceOf({ request: `{"trace_id":"${'t'.repeat(256)}"}` }), null);
  assert.equal(await traceOf({ request: String.raw`{"trace\u005fid":"own"}` }), 'own');
  assert.equal(await traceOf({ request: '{"trace_id":7}' }), null);
  assert.equal(await traceOf({ request: '{"meta":{"trace_id":"own"}}' }), null);
});

test('it handles any input like the API', async () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 20 }),
    fc.string({ unit: 'grapheme-ascii', minLength: 5, maxLength: 70 }),
  );
  const storable = text.map((one) => one.toWellFormed().replaceAll('\0', '_'));
  const asked = fc.record({
    request: fc.oneof(jsonTexts, fc.constant('{"a":1}')),
    key: fc.oneof(storable, fc.uuid()),
    destination: fc.oneof(storable, fc.stringMatching(/^[a-z][a-zA-Z0-9_.-]{0,20}$/), fc.constant('broker')),
    orderingKey: fc.option(storable),
    traceId: fc.option(storable),
  });
  await database.db.transaction(async (tx) => {
    await fc.assert(
      fc.asyncProperty(asked, async (order) => {
        const { outcome } = await addOrder(tx, order);
        assert.equal(outcome === 'refused', !isAcceptable(order), outcome);
      }),
      { numRuns: 400 },
    );
  });
});

function isAcceptable({
  request,
  key,
  destination,
  orderingKey,
  traceId,
}: Readonly<Record<keyof Asked, string | null>>): boolean {
  const read = parseExactJson(request ?? '');
  if (!read.ok || typeof read.value !== 'object' || read.value === null || Array.isArray(read.value))
    return false;
  const lengthOf = (text: string | null): number => Array.from(text ?? '').length;
  return (
    isIdempotencyKey(key ?? '') &&
    isDestinationName(destination ?? '') &&
    orderingKey !== '' &&
    lengthOf(orderingKey) <= 255 &&
    lengthOf(traceId) <= 255
  );
}

test('a key or ordering key held by another transaction is busy, and the transaction can continue', async () => {
  const key = randomUUID();
  const orderingKey = randomUUID();
  const first = await database.db.transaction(async (holder) => {
    const held = await addOrder(holder, { key, orderingKey });
    const other = await database.db.transaction(async (tx) => {
      for (const asked of [{ key, orderingKey }, { key, request: '{}' }, { orderingKey }]) {
        const begin = performance.now();
        assert.deepEqual(await addOrder(tx, asked), { id: null, outcome: 'busy' });
        const waitedMs = performance.now() - begin;
        assert.ok(waitedMs >= 450 && waitedMs < 2000, `waited ${waitedMs} ms`);
      }
      return addOrder(tx);
    });
    assert.equal(other.outcome, 'created');
    assert.equal((await stored(other.id)).status, 'queued');
    return held;
  });
  assert.equal(first.outcome, 'created');
  assert.deepEqual(await addOrder(database.db, { key, orderingKey }), { id: first.id, outcome: 'replayed' });
  assert.equal((await addOrder(database.db, { orderingKey })).outcome, 'created');
});

test('a rolled back order leaves no trace', async () => {
  const key = randomUUID();
  const rolledBack = database.db.transaction(async (tx) => {
    assert.equal((await addOrder(tx, { key })).outcome, 'created');
    throw new Error('changed my mind');
  });
  await assert.rejects(rolledBack, /changed my mind/);
  assert.equal((await addOrder(database.db, { key, request: '{}' })).outcome, 'created');
});

test('its arguments may come from columns of different collations', async () => {
  await database.db.transaction(async (tx) => {
    await tx.query(sql`
      CREATE COLLATION pg_temp.caseless (PROVIDER = icu, LOCALE = 'und-u-ks-level2', DETERMINISTIC = false)`);
    await tx.query(sql`
      CREATE TEMPORARY TABLE wanted (
        key TEXT COLLATE pg_temp.caseless, destination TEXT COLLATE pg_temp.caseless, ordering_key TEXT COLLATE "POSIX"
      ) ON COMMIT DROP`);
    await tx.query(sql`INSERT INTO wanted VALUES (${randomUUID()}, 'broker', 'USDJPY')`);
    const ofOne = sql`SELECT added.outcome FROM wanted, outbox.add_order('{}', key, destination) AS added`;
    const ofTwo = sql`
      SELECT added.outcome FROM wanted, outbox.add_order('{}', key, destination, ordering_key) AS added`;
    const outcomes = [await tx.query(ofOne), await tx.query(ofOne), await tx.query(ofTwo)].flat();
    assert.deepEqual(outcomes, [{ outcome: 'created' }, { outcome: 'replayed' }, { outcome: 'mismatch' }]);
  });
});

test('a number with many zeros is stored in short form', async () => {
  const { id } = await addOrder(database.db, { request: '{"a":[0e-16383,0e-400000,1.50e0]}' });
  assert.equal((await stored(id)).request, '{"a": [0, 0, 1.5]}');
});

test('a request of a megabyte is stored, a larger one is refused', async () => {
  const text = 'x'.repeat(1_000_000);
  const request = { text };
  const { id } = await addOrder(database.db, { request: JSON.stringify(request) });
  assert.equal(
    (await stored(id)).digest,
    requestDigest({ destination: 'broker', orderingKey: null, request }),
  );
  const huge = await database.db.query<Added>(sql`
    SELECT id, outcome
    FROM outbox.add_order(('{"a":"' || repeat('x', 1048576) || '"}')::json, ${randomUUID()}, 'broker')`);
  assert.deepEqual(huge, [{ id: null, outcome: 'refused' }]);
});

test('a request that is too large with its numbers written out is refused, and the transaction can continue', async () => {
  const [wide, deep] = [`{"n":[${'1e308,'.repeat(60_000)}1]}`, `{"n":[${'1e131071,'.repeat(9000)}1]}`];
  const key = randomUUID();
  await database.db.transaction(async (tx) => {
    assert.deepEqual(await addOrder(tx, { request: wide, key }), { id: null, outcome: 'refused' });
    assert.deepEqual(await addOrder(tx, { request: deep, key }), { id: null, outcome: 'refused' });
    assert.equal((await addOrder(tx, { key })).outcome, 'created');
  });
  assert.equal((await addOrder(database.db, { key })).outcome, 'replayed', 'the transaction has committed');
});

test('the size limit also applies to compressed values of another table', async () => {
  const { id } = await addOrder(database.db);
  await database.db
    .transaction(async (tx) => {
      await tx.query(sql`CREATE TEMPORARY TABLE copied (request JSONB) ON COMMIT DROP`);
      await tx.query(sql`INSERT INTO copied SELECT jsonb_agg(1e131071) FROM generate_series(1, 150)`);
      const [size] = await tx.query<{ bytes: number }>(
        sql`SELECT pg_column_size(request) AS bytes FROM copied`,
      );
      assert.ok((size?.bytes ?? 0) <= 1000, `${size?.bytes} bytes`);
      await assert.rejects(
        tx.query(sql`
        UPDATE outbox.outbox_orders SET request_json = (SELECT request FROM copied) WHERE id = ${id}`),
        /request_json is too large/,
      );
      throw new Error('undone');
    })
    .catch((error: unknown) => assert.match(String(error), /undone/));
});
