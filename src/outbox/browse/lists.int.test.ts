import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import { callerCalled } from '../../../tests/support/outbox-orders.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { statuses } from '../domain/order.ts';
import type { Order } from '../domain/order-details.ts';
import { findReplay } from '../accept/insert-order.ts';
import { countFacets } from './count-facets.ts';
import { selectBacklogs } from './describe-destinations.ts';
import { findLedgerEntries } from './find-ledger-entries.ts';
import { getOrderDetails } from './find-order.ts';
import { listOrders } from './list-orders.ts';
import { isByTime, type OrderFilter } from './order-filter.ts';

const orders = 30_000;
const begin = Date.parse('2026-02-01T00:00:00Z');
const at = (order: number): Date => new Date(begin + order * 1000);

let database: TestDatabase;
before(async () => {
  database = await createTestDatabase();
  // Ids and times are not in the same order everywhere.
  await database.db.query(sql`
    INSERT INTO outbox.outbox_orders
      (idempotency_key, request_json, request_digest, status, resolution, next_attempt_at, created_at, destination,
       ordering_key, ordering_seq)
    SELECT 'list-key-' || i, '{"a": 1}', 'sha256:x',
           (ARRAY['queued', 'sent', 'sent', 'failed', 'sent', 'dead', 'dead', 'sending'])[1 + i % 8],
           CASE WHEN i % 8 = 6 THEN 'skipped' END, now(),
           ${at(0)}::timestamptz + (i # 3) * interval '1 second', 'destination-' || i % 19,
           CASE WHEN i % 3 = 0 THEN 'account-' || i % 50 END, CASE WHEN i % 3 = 0 THEN i END
    FROM generate_series(1, ${orders}) AS i`);
  await database.db.query(sql`
    UPDATE outbox.outbox_orders
    SET fingerprint = 'v2:' || id % 400, in_doubt = id % 5 = 0,
        last_error = CASE WHEN id % 5 = 0 THEN 'UNKNOWN: no answer' ELSE 'NETWORK_TIMEOUT: 3000 ms' END
    WHERE status IN ('failed', 'dead')`);
  await database.db.query(sql`
    UPDATE outbox.outbox_orders SET held = true
    WHERE ordering_key IS NOT NULL AND status IN ('queued', 'failed') AND ordering_seq % 7 = 0`);
  await database.db.query(sql`
    INSERT INTO outbox.idempo_ledger (idempotency_key, request_digest, outbox_id, http_status, response_payload)
    SELECT idempotency_key, request_digest, id, 201, '{}' FROM outbox.outbox_orders`);
  await database.db.query(sql`VACUUM ANALYZE outbox.outbox_orders, outbox.idempo_ledger`);
});
after(() => database.drop());

/** Runs every statement, and records its plan with sequential scans disabled. */
function explaining(plans: string[]): Queryable {
  return {
    async query<Row>(statement: Sql) {
      // An EXPLAIN reads no rows.
      if (!statement.text.trimStart().startsWith('EXPLAIN'))
        await database.db.transaction(async (tx) => {
          await tx.query(sql`SET LOCAL enable_seqscan = off`);
          const plan = await tx.query<{ 'QUERY PLAN': string }>(sql`EXPLAIN ${statement}`);
          plans.push(plan.map((line) => line['QUERY PLAN']).join('\n'));
        });
      return database.db.query<Row>(statement);
    },
  };
}

const destination = 'destination-7';
const window = { createdFrom: at(10_000), createdTo: at(12_000) };
const fingerprint = 'v2:37';
const filters: readonly OrderFilter[] = [
  {},
  { fingerprint },
  { fingerprint, destination },
  { needsAttention: true },
  { destination },
  { idempotencyKey: 'list-key-777' },
  window,
  { createdFrom: window.createdFrom },
  { createdTo: window.createdTo },
  { destination, ...window },
  { destination, needsAttention: true },
  { status: ['failed', 'dead'] },
  { errorCode: 'UNKNOWN' },
  { inDoubt: true },
  { isBlocked: true },
  { needsAttention: false, inDoubt: false, isBlocked: false, status: ['dead', 'failed'] },
  { orderingKey: 'account-7', destination },
  ...statuses.flatMap((status) => [
    { status: [status] },
    { status: [status], destination },
    { status: [status], ...window },
    { status: [status], destination, ...window },
  ]),
];

test('no list, count, proof or summary scans a whole table', async () => {
  const plans: string[] = [];
  const db = explaining(plans);
  for (const filter of filters) {
    await listOrders(db, filter, { by: 'keyset', after: null, pageSize: 20 });
    await listOrders(db, filter, { by: 'number', offset: 20, pageSize: 20 });
  }
  await selectBacklogs(db, [destination]);
  await getOrderDetails(db, 777n);
  await findLedgerEntries(db, 'list-key-777');
  await findReplay(db, { idempotencyKey: 'list-key-777', digest: 'sha256:x' }, callerCalled('ada'));
  assert.ok(plans.length > 3 * filters.length);
  for (const plan of plans) assert.doesNotMatch(plan, /Seq Scan on (outbox_|idempo_)/);
});

test('each list uses its index', async () => {
  const plans: string[] = [];
  const db = explaining(plans);
  const indexes: readonly (readonly [string, OrderFilter])[] = [
    ['outbox_orders_pkey', {}],
    ['outbox_orders_idempotency_key_key', { idempotencyKey: 'list-key-777' }],
    ['idx_outbox_orders_destination', { destination }],
    ['idx_outbox_orders_created_at', window],
    ['idx_outbox_orders_fingerprint', { fingerprint }],
  ];
  for (const [index, filter] of indexes) {
    plans.length = 0;
    await listOrders(db, filter, { by: 'keyset', after: null, pageSize: 20 });
    assert.equal(plans.length, 2);
    for (const plan of plans) assert.match(plan, new RegExp(index));
    // The plan of the count depends on the vacuum; a page is read in the order of the index.
    if (filter.idempotencyKey === undefined)
      assert.match(plans[1] ?? '', new RegExp(`Backward using ${index}`));
  }
});

function isMatch(filter: OrderFilter, order: Order): boolean {
  return (
    (filter.status === undefined || filter.status.includes(order.status)) &&
    (filter.destination === undefined || order.destination === filter.destination) &&
    (filter.idempotencyKey === undefined || order.idempotencyKey === filter.idempotencyKey) &&
    (filter.fingerprint === undefined || order.fingerprint === filter.fingerprint) &&
    (filter.errorCode === undefined || order.lastError?.startsWith(`${filter.errorCode}:`) === true) &&
    (filter.inDoubt === undefined || (order.inDoubt && order.status !== 'sent') === filter.inDoubt) &&
    (filter.isBlocked === undefined ||
      (order.isBlocked && ['queued', 'failed'].includes(order.status)) === filter.isBlocked) &&
    (filter.orderingKey === undefined || order.orderingKey === filter.orderingKey) &&
    (filter.needsAttention === undefined ||
      (order.status === 'dead' && order.resolution === null) === filter.needsAttention) &&
    (filter.createdFrom === undefined || order.createdAt >= filter.createdFrom) &&
    (filter.createdTo === undefined || order.createdAt < filter.createdTo)
  );
}

test('following the cursor returns every matching order once, newest first, and matches the count', async () => {
  const { db } = database;
  for (const filter of filters) {
    const byTime = isByTime(filter);
    const seen: Order[] = [];
    let total = 0;
    for (let hasNext = true; hasNext && seen.length < 3000;) {
      const last = seen.at(-1);
      const createdAt = byTime ? (last?.createdAtExact ?? '') : null;
      const after = last === undefined ? null : { id: String(last.id), createdAt };
      const page = await listOrders(db, filter, { by: 'keyset', after, pageSize: 1000 });
      seen.push(...page.orders);
      ({ hasNext } = page);
      total = page.count.total;
      if (!hasNext && !page.count.isEstimate) assert.equal(seen.length, total);
    }
    assert.ok(seen.length > 0 && seen.length <= total);
    assert.ok(seen.every((order) => isMatch(filter, order)));
    assert.equal(new Set(seen.map(({ id }) => id)).size, seen.length);
    const key = ({ id, createdAt }: Order): number => (byTime ? createdAt.getTime() : Number(id));
    assert.ok(seen.every((order, i) => i === 0 || key(order) <= key(seen[i - 1] ?? order)));
  }
});

test('a large total is an estimate close to the real number', async () => {
  const page = { by: 'keyset', after: null, pageSize: 1 } as const;
  const { count } = await listOrders(database.db, { status: ['sent'] }, page);
  const { total, isEstimate } = count;
  assert.ok(isEstimate);
  assert.ok(Math.abs(total - (orders * 3) / 8) < orders / 20, String(total));
});

test('facets count what the same filter finds, and say if they are estimates', async () => {
  const exact = await countFacets(database.db, { needsAttention: true, destination });
  const page = { by: 'keyset', after: null, pageSize: 2000 } as const;
  const listed = await listOrders(database.db, { needsAttention: true, destination }, page);
  assert.equal(exact.sampled, null);
  assert.deepEqual(exact.count, listed.count);
  assert.deepEqual(exact.facets.get('status'), [{ value: 'dead', count: listed.orders.length }]);
  const inDoubt = listed.orders.filter((order) => order.inDoubt).length;
  assert.deepEqual(exact.facets.get('error_code')?.find(({ value }) => value === 'UNKNOWN')?.count, inDoubt);
  assert.equal(exact.facets.get('fingerprint')?.length, 20);
  const scaled = await countFacets(database.db, {});
  assert.ok(scaled.count.isEstimate);
  assert.equal(scaled.sampled, 10_001);
  const all = scaled.facets.get('status')?.reduce((sum, { count }) => sum + count, 0) ?? 0;
  assert.ok(Math.abs(all - scaled.count.total) <= 5, String(all));
  const none = await countFacets(database.db, { names: [] });
  assert.deepEqual([none.count, none.facets.get('status')], [{ total: 0, isEstimate: false }, []]);
});

test('pages by number past an estimated total still show their orders', async () => {
  // A planner that underestimates.
  const db: Queryable = {
    query: async <Row>(statement: Sql) =>
      statement.text.trimStart().startsWith('EXPLAIN')
        ? ([{ 'QUERY PLAN': [{ Plan: { 'Plan Rows': 1 } }] }] as unknown as readonly Row[])
        : database.db.query<Row>(statement),
  };
  const { orders: shown, count } = await listOrders(db, {}, { by: 'number', offset: 20_000, pageSize: 20 });
  assert.deepEqual(count, { total: 10_001, isEstimate: true });
  assert.equal(shown.length, 20);
});

test('a destination with a large backlog shows a lower bound and the lag', async () => {
  const { db } = database;
  await db.query(sql`
    INSERT INTO outbox.outbox_orders
      (idempotency_key, request_json, request_digest, status, next_attempt_at, created_at, destination)
    SELECT 'flood-key-' || i, '{}', 'sha256:x', 'queued', now(), now() - interval '1 hour', 'flooded'
    FROM generate_series(1, 10001) AS i`);
  const backlogs = await selectBacklogs(db, ['flooded', 'unheard-of']);
  const of = (name: string) => backlogs.find((backlog) => backlog.destination === name);
  assert.deepEqual(of('flooded')?.waiting, { total: 10_000, isEstimate: true });
  assert.ok(Math.round(of('flooded')?.lagSeconds ?? 0) >= 3600);
  assert.deepEqual(of('unheard-of'), {
    destination: 'unheard-of',
    waiting: { total: 0, isEstimate: false },
    lagSeconds: null,
    lagP99Seconds: null,
    inFlight: 0,
    needsAttention: { total: 0, isEstimate: false },
  });
  assert.ok(Math.round(of('flooded')?.lagP99Seconds ?? 0) >= 3600);
  assert.equal(backlogs.length, 21);
  const inFlight = backlogs.reduce((sum, backlog) => sum + backlog.inFlight, 0);
  const waiting = backlogs.reduce((sum, backlog) => sum + backlog.waiting.total, 0);
  assert.equal(inFlight, orders / 8);
  const dead = backlogs.reduce((sum, backlog) => sum + backlog.needsAttention.total, 0);
  assert.equal(dead, orders / 8);
  assert.equal(waiting, (2 * orders) / 8 + 10_000);
});

// Last: it changes the orders.
test('orders that need attention are found by an index when they are rare', async () => {
  await database.db.query(sql`
    UPDATE outbox.outbox_orders SET status = 'sent', resolution = NULL WHERE status = 'dead' AND id % 100 > 0`);
  await database.db.query(sql`VACUUM ANALYZE outbox.outbox_orders`);
  const plans: string[] = [];
  const db = explaining(plans);
  for (const filter of [{ needsAttention: true }, { status: ['dead'] }] as const)
    await listOrders(db, filter, { by: 'keyset', after: null, pageSize: 20 });
  assert.equal(plans.length, 4);
  for (const plan of plans) assert.match(plan, /using idx_outbox_orders_(status|unresolved)/);
});
