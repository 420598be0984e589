import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { createTestDatabase, type TestDatabase } from '../../../tests/support/database.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { Sql, sql } from '../../platform/postgres/sql.ts';
import { createMetrics, type Metrics } from '../../platform/telemetry/metrics.ts';
import { clearGauges } from '../../platform/work/gauges.ts';
import { orderGauges, type DestinationState } from './gauges.ts';

let database: TestDatabase;
before(async () => void (database = await createTestDatabase()));
after(() => database.drop());
beforeEach(() => database.db.query(sql`TRUNCATE outbox.outbox_orders`));

type Rows = Readonly<{
  status: string;
  count: number;
  destination?: string;
  /** Of the first one; each next one is a second older. */
  ageSeconds?: number;
  keyed?: boolean;
  resolution?: string;
}>;

async function add({ status, count, destination = 'broker', ageSeconds = 0, ...more }: Rows): Promise<void> {
  await database.db.query(sql`
    INSERT INTO outbox.outbox_orders
      (idempotency_key, request_json, request_digest, status, next_attempt_at, created_at, destination, resolution,
       ordering_key, ordering_seq, held)
    SELECT gen_random_uuid()::text, '{}', 'sha256:1', ${status}, at, at, ${destination}, ${more.resolution ?? null},
           CASE WHEN ${more.keyed ?? false} THEN 'key' END, CASE WHEN ${more.keyed ?? false} THEN n END,
           ${more.keyed ?? false} AND n > 1
    FROM generate_series(1, ${count}::int) AS n,
         LATERAL (SELECT now() - (${ageSeconds}::int + n - 1) * interval '1 second' AS at) AS age`);
}

/** The samples of the slice by their names with labels. */
async function samples(metrics: Metrics): Promise<Readonly<Record<string, number>>> {
  const lines = (await metrics.render()).split('\n').filter((line) => line.startsWith('outbox_'));
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.split(' ').at(-1))]),
  );
}

/** The series of one measurement. */
async function oneRound(
  states: readonly DestinationState[] = [],
  db: Queryable = database.db,
): Promise<Readonly<Record<string, number>>> {
  const metrics = createMetrics();
  const gauges = orderGauges(metrics, { db, states: () => states });
  const set = await gauges.measure();
  clearGauges(gauges);
  set();
  return samples(metrics);
}

test('an idle system has no lag and nothing in flight', async () => {
  assert.deepEqual(await oneRound(), {
    outbox_inflight: 0,
    'outbox_lag_seconds{quantile="0.5"}': 0,
    'outbox_lag_seconds{quantile="0.95"}': 0,
    'outbox_lag_seconds{quantile="0.99"}': 0,
    outbox_internal_dead: 0,
  });
});

test('orders are counted while they wait, are being sent, or need attention', async () => {
  await add({ status: 'queued', count: 3 });
  await add({ status: 'failed', count: 2 });
  await add({ status: 'queued', count: 4, keyed: true });
  await add({ status: 'sending', count: 6 });
  await add({ status: 'sent', count: 9 });
  await add({ status: 'dead', count: 5 });
  await add({ status: 'dead', count: 7, resolution: 'skipped' });
  await add({ status: 'dead', count: 2, destination: '_notify_ops' });
  await add({ status: 'dead', count: 1, destination: '_saga_events' });
  const found = await oneRound();
  assert.equal(found['outbox_inflight'], 6);
  assert.equal(found['outbox_orders{destination="broker",status="waiting"}'], 9);
  const oldestAt = found['outbox_oldest_waiting_timestamp_seconds'] ?? 0;
  assert.ok(
    Math.abs(Date.now() / 1000 - oldestAt) < 60,
    'of those that wait, the oldest is four seconds old',
  );
  assert.equal(found['outbox_orders{destination="broker",status="dead"}'], 5);
  assert.equal(found['outbox_orders{destination="_notify_ops",status="waiting"}'], 0);
  assert.equal(found['outbox_orders{destination="_notify_ops",status="dead"}'], 2);
  assert.equal(found['outbox_internal_dead'], 3);
});

test('the lag is the age of waiting orders, not of sent or dead ones', async () => {
  await add({ status: 'queued', count: 50, ageSeconds: 0 });
  await add({ status: 'failed', count: 51, ageSeconds: 50 });
  await add({ status: 'sent', count: 100, ageSeconds: 10_000 });
  await add({ status: 'dead', count: 100, ageSeconds: 10_000 });
  const found = await oneRound();
  for (const [quantile, expected] of [
    ['0.5', 50],
    ['0.95', 95],
    ['0.99', 99],
  ] as const) {
    const lag = found[`outbox_lag_seconds{quantile="${quantile}"}`] ?? Number.NaN;
    assert.ok(lag >= expected && lag < expected + 20, `${quantile}: ${lag}`);
  }
});

test('an order whose clock was ahead has no negative lag', async () => {
  await add({ status: 'queued', count: 1, ageSeconds: -3600 });
  assert.equal((await oneRound())['outbox_lag_seconds{quantile="0.5"}'], 0);
});

test('a destination has a rate only while it is throttled, and always a circuit state', async () => {
  const found = await oneRound([
    { destination: 'slow', rate: 2.5, isOpen: false },
    { destination: 'down', rate: null, isOpen: true },
  ]);
  assert.equal(found['outbox_throttle{destination="slow"}'], 2.5);
  assert.ok(!('outbox_throttle{destination="down"}' in found));
  assert.equal(found['outbox_circuit_open{destination="slow"}'], 0);
  assert.equal(found['outbox_circuit_open{destination="down"}'], 1);
});

test('no table is scanned as a whole, and counts stop at their limit', async () => {
  await add({ status: 'sent', count: 30_000, ageSeconds: 50_000 });
  for (const destination of ['a', 'b']) {
    await add({ status: 'queued', count: 8000, destination });
    await add({ status: 'failed', count: 12_000, destination, keyed: true });
    await add({ status: 'dead', count: 2000, destination });
  }
  await add({ status: 'sending', count: 100 });
  await database.db.query(sql`ANALYZE outbox.outbox_orders`);
  const plans: string[] = [];
  const explaining: Queryable = {
    async query(statement) {
      const rows = await database.db.query<{ 'QUERY PLAN': string }>(
        sql`EXPLAIN (ANALYZE) ${new Sql(statement.strings, statement.values)}`,
      );
      plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'));
      return database.db.query(statement);
    },
  };
  const found = await oneRound([], explaining);
  assert.equal(found['outbox_orders{destination="a",status="waiting"}'], 1000);
  assert.equal(found['outbox_orders{destination="b",status="dead"}'], 1000);
  assert.equal(plans.length, 3);
  for (const plan of plans) {
    // A bitmap is made of everything that matches, before the bound can stop it.
    assert.doesNotMatch(plan, /Seq Scan on outbox_orders/);
    // Rows that an index scan hands up, over all its loops, stay near what is measured or counted.
    for (const [, rows] of plan.matchAll(/Index.*Scan.* rows=(\d+) loops=\d+\)/g))
      assert.ok(Number(rows) <= 10_000, plan);
  }
});
