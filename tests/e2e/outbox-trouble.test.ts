import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { Client } from 'pg';
import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from '../support/eventually.ts';
import { startOutboxSystem, type OutboxSystem, type OutboxSystemOptions } from '../support/outbox-system.ts';

async function open(t: TestContext, options: OutboxSystemOptions): Promise<OutboxSystem> {
  const outbox = await startOutboxSystem(options);
  t.after(() => outbox.drop());
  return outbox;
}

async function addMany(
  db: Database,
  destination: string,
  count: number,
  orderingKey?: string,
): Promise<void> {
  await db.query(sql`
    SELECT outbox.add_order('{"a": 1}'::json, ${destination} || '-' || COALESCE(${orderingKey ?? null}, 'free') || '-' || lpad(n::text, 8, '0'),
                            ${destination}, ${orderingKey ?? null})
    FROM generate_series(1, ${count}) n`);
}

async function counts(db: Database): Promise<Readonly<Record<string, number>>> {
  const rows = await db.query<{ status: string; count: bigint }>(sql`
    SELECT status, count(*) FROM outbox.outbox_orders GROUP BY status`);
  return Object.fromEntries(rows.map(({ status, count }) => [status, Number(count)]));
}

test('errors with ordered orders do not affect unordered ones', async (t) => {
  const failing = { is: false };
  const outbox = await open(t, {
    broker: { idempotency: 'none' },
    wrap: {
      database: (db) => ({
        ...db,
        async query(statement) {
          if (failing.is && statement.text.includes('AS is_behind'))
            throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
          return db.query(statement);
        },
      }),
    },
  });
  failing.is = true;
  await addMany(outbox.system.db, 'broker', 20);
  await eventually(async () => assert.deepEqual(await counts(outbox.system.db), { sent: 20 }));
});

test('a success is stored, however long the database is unavailable', async (t) => {
  const outbox = await open(t, {
    broker: { idempotency: 'none', timeout_ms: 3000 },
    env: { DATABASE_STATEMENT_TIMEOUT: '300ms' },
  });
  outbox.otherwise(() => ({ act: 'hold' }));
  const id = await outbox.order();
  await eventually(() => assert.equal(outbox.partner.requests.length, 1));
  const blocker = new Client({ connectionString: outbox.system.database.url });
  await blocker.connect();
  await blocker.query('BEGIN; LOCK TABLE outbox.outbox_audit IN ACCESS EXCLUSIVE MODE');
  outbox.partner.release();
  // The settle times out at least once meanwhile.
  await eventually(async () => {
    const { rows } = await blocker.query<{ blocked_ms: number }>(`
      SELECT (date_part('epoch', clock_timestamp() - xact_start) * 1000)::int AS blocked_ms
      FROM pg_stat_activity WHERE pid = pg_backend_pid()`);
    assert.ok((rows[0]?.blocked_ms ?? 0) > 1000);
  });
  await blocker.query('COMMIT');
  await blocker.end();
  await outbox.becomes(id, 'sent');
});

test('a stopping dispatcher does not wait for the sends of another', async (t) => {
  const outbox = await open(t, {
    destinations: () => ({ hanging: { timeout_ms: 2000 } }),
  });
  await outbox.order({ destination: 'hanging', does: [{ act: 'hang', effect: false }] });
  await eventually(() => assert.equal(outbox.partner.requests.length, 1));
  const stopped = outbox.system.stop();
  await addMany(outbox.system.db, 'broker', 50);
  await stopped;
  assert.equal((await counts(outbox.system.db))['queued'], 50);
  assert.equal(outbox.partner.requests.length, 1);
});

test('an order that dies although the destination did not know it stays in doubt', async (t) => {
  const outbox = await open(t, {
    broker: { idempotency: 'none', timeout_ms: 300 },
    destinations: ({ statusUrl }) => ({ asking: { status_url: statusUrl } }),
    env: { OUTBOX_RETRY_MAX: '0' },
  });
  const id = await outbox.order({ destination: 'asking', does: [{ act: 'hang', effect: false }] });
  const row = await outbox.becomes(id, 'dead');
  assert.equal(row.in_doubt, true);
  assert.match(row.last_error ?? '', /^UNKNOWN: /);
  const answer = await outbox.system.api.post(`/api/v1/outbox/orders/${id}/skip`, {});
  assert.equal(answer.status, 409);
});

test('a process that only shows orders knows of an open circuit', async (t) => {
  const outbox = await open(t, { env: { ROLES: 'api' } });
  await outbox.system.db.query(sql`
    INSERT INTO outbox.destination_state
      (destination, version, opened_at, open_reason, probe_interval_ms, next_probe_at)
    VALUES ('broker', 1, now(), 'BROKER_5XX: HTTP 500', 5000, now() + interval '1 hour')`);
  await eventually(async () => {
    const { body } = await outbox.system.api.get<{ destinations: { circuit: { state: string } }[] }>(
      '/api/v1/outbox/destinations',
    );
    assert.equal(body.destinations[0]?.circuit.state, 'open');
  });
  const ready = await outbox.system.api.get<{ status: string }>('/readyz');
  assert.equal(ready.body.status, 'degraded');
});

test('orders to a topic are not claimed while Kafka is disabled', async (t) => {
  const outbox = await open(t, {
    destinations: () => ({ topic: { type: 'kafka', topic: 'orders.events.v1' } }),
  });
  await addMany(outbox.system.db, 'topic', 10);
  const id = await outbox.order();
  await outbox.becomes(id, 'sent');
  const rows = await outbox.system.db.query(sql`
    SELECT 1 FROM outbox.outbox_audit a JOIN outbox.outbox_orders o ON o.id = a.outbox_id
    WHERE o.destination = 'topic' AND a.status_to <> 'queued'`);
  assert.deepEqual(rows, []);
  await eventually(async () => {
    const ready = await outbox.system.api.get<{ checks: { outbox: { message?: string } } }>('/readyz');
    assert.match(ready.body.checks.outbox.message ?? '', /without a broker: topic/);
  });
});

test('orders behind many dead ones do not delay another key', async (t) => {
  const outbox = await open(t, { env: { OUTBOX_IDLE_SLEEP_MS: '5000' } });
  const { db } = outbox.system;
  await db.query(sql`
    INSERT INTO outbox.outbox_orders
      (idempotency_key, request_json, request_digest, status, next_attempt_at, destination, ordering_key, ordering_seq)
    SELECT 'crowd-' || n || '-' || place, '{}', 'sha256:x', CASE place WHEN 0 THEN 'dead' ELSE 'queued' END,
           now() - interval '1 minute', 'broker', 'crowd-' || n, nextval('outbox.ordering_seqs')
    FROM generate_series(1, 600) n, generate_series(0, 1) place`);
  const id = await outbox.order({ ordering_key: 'another' });
  await outbox.becomes(id, 'sent', 4000);
});
