import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { onceAborted } from '../../src/kernel/clock.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from '../../tests/support/eventually.ts';
import { startTestSystem, type TestSystem } from '../../tests/support/start-system.ts';
import { openBook } from './book.ts';
import type { Mistake } from './desk-orders.ts';
import { openTradingPartner, type TradingPartner } from './trading-partner.ts';

/** The whole demo against the whole system, on a clock that the test turns. */

const turnMs = 1000;
const firstOutageAfterMs = 60_000;
const outageMs = 15_000;

let folder: string;
let system: TestSystem;
let partner: TradingPartner;
let running: Promise<void>;
const stopping = new AbortController();
const outage = { begins: Promise.withResolvers<void>(), ends: Promise.withResolvers<void>() };
const mistaken = Promise.withResolvers<Mistake>();

/** The desk's turns: as many as it is given, one right after another. */
const turns = { left: 20, more: Promise.withResolvers<void>() };

function giveTurns(count: number): void {
  turns.left = count;
  turns.more.resolve();
  turns.more = Promise.withResolvers<void>();
}

async function sleepInTest(ms: number, signal: AbortSignal): Promise<void> {
  const until = (promise: Promise<void>): Promise<void> => Promise.race([promise, onceAborted(signal)]);
  if (ms === firstOutageAfterMs) return until(outage.begins.promise);
  if (ms === outageMs) return until(outage.ends.promise);
  if (ms !== turnMs) return onceAborted(signal);
  turns.left -= 1;
  if (turns.left <= 0) await until(turns.more.promise);
}

before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'redrive-trading-'));
  const limit = { ordersPerSecond: 10, retryAfterSeconds: 1 };
  partner = await openTradingPartner({ bookFile: join(folder, 'book.jsonl'), limit });
  const { broker, orders_topic } = partner.destinations;
  system = await startTestSystem({
    kafka: 'local',
    env: {
      OUTBOX_DESTINATIONS: JSON.stringify({ broker: { ...broker, timeout_ms: 250 }, orders_topic }),
      OUTBOX_BACKOFF_INITIAL_MS: '20',
      OUTBOX_BACKOFF_MAX_MS: '80',
      OUTBOX_IDLE_SLEEP_MS: '20',
      OUTBOX_PROBE_INITIAL_MS: '50',
    },
  });
  assert.ok(system.broker);
  running = partner.run({
    redriveUrl: system.url,
    broker: system.broker,
    signal: stopping.signal,
    seed: 'any',
    onMistake: mistaken.resolve,
    onFirstOutage: () => {},
    sleep: sleepInTest,
  });
});

after(async () => {
  stopping.abort();
  await running;
  await system.drop();
  await partner.close();
  rmSync(folder, { recursive: true });
});

type Order = Readonly<{
  idempotency_key: string;
  destination: string;
  status: string;
  ordering_key: string | null;
  broker_order_id: string | null;
}>;

async function orders(): Promise<readonly Order[]> {
  return system.db.query<Order>(sql`
    SELECT idempotency_key, destination, status, ordering_key, response ->> 'broker_order_id' AS broker_order_id
    FROM outbox.outbox_orders ORDER BY id`);
}

/** Resolves when nothing waits but what is held by an order that needs attention. */
async function settled(): Promise<readonly Order[]> {
  return eventually(async () => {
    assert.ok(turns.left <= 0, 'the desk has had its turns');
    const all = await orders();
    const open = all.filter(({ status }) => status !== 'sent' && status !== 'dead');
    assert.deepEqual(
      open.filter(({ ordering_key: account }) => account !== 'account-7'),
      [],
    );
    return all;
  });
}

async function reasons(): Promise<string> {
  const rows = await system.db.query<{ last_error: string }>(sql`
    SELECT DISTINCT last_error FROM outbox.outbox_audit WHERE last_error IS NOT NULL`);
  return rows.map((row) => row.last_error).join('\n');
}

/** What Redrive says was sent is what the partner has done, and each once. */
function assertDoneOnce(all: readonly Order[]): void {
  const done = openBook({ file: join(folder, 'book.jsonl'), keepMs: 3_600_000 }).effects();
  const sent = all.filter((order) => order.destination === 'broker' && order.status === 'sent');
  assert.equal(new Set(done.map(({ brokerOrderId }) => brokerOrderId)).size, done.length);
  assert.deepEqual(
    new Map(sent.map((order) => [order.idempotency_key, order.broker_order_id])),
    new Map(done.map((effect) => [effect.idempotencyKey, effect.brokerOrderId])),
  );
}

test('the partner fails in every way, and each order is done once', { timeout: 30_000 }, async () => {
  assertDoneOnce(await settled());
  const said = await reasons();
  for (const reason of [
    /^BROKER_5XX: HTTP 503: /m,
    /^BROKER_5XX: HTTP 500: /m,
    /^NETWORK_TIMEOUT: no complete answer within 250 ms$/m,
    /^RATE_LIMITED: HTTP 429: /m,
    /^CONFLICT_PROCESSED: /m,
    /^BAD_REQUEST: HTTP 400: .*USDJPX is not traded here/m,
  ])
    assert.match(said, reason);
});

test('a mistake holds its account until a person puts it right', { timeout: 30_000 }, async () => {
  giveTurns(5);
  const { id, account, corrected } = await mistaken.promise;
  assert.equal(account, 'account-7');
  const held = (await settled()).filter((order) => order.ordering_key === account);
  assert.deepEqual(
    held.map(({ status }) => status),
    ['dead', 'queued', 'queued'],
  );
  const answer = await system.api.post(
    `/api/v1/outbox/orders/${id}/supersede`,
    { idempotency_key: `corrected-${id}`, request: corrected },
    { 'idempotency-key': `corrected-${id}` },
  );
  assert.equal(answer.status, 201, answer.text);
  await eventually(async () => {
    const theirs = (await orders()).filter((order) => order.ordering_key === account);
    assert.deepEqual(
      theirs.map(({ status }) => status),
      ['dead', 'sent', 'sent', 'sent'],
    );
  });
});

test('while the partner is away its circuit is open, and closes after it', { timeout: 30_000 }, async () => {
  outage.begins.resolve();
  giveTurns(12);
  const circuit = async (): Promise<string | undefined> => {
    const { body } = await system.api.get<{
      destinations: readonly Readonly<{ name: string; circuit: { state: string } }>[];
    }>('/api/v1/outbox/destinations');
    return body.destinations.find(({ name }) => name === 'broker')?.circuit.state;
  };
  await eventually(async () => assert.equal(await circuit(), 'open'));
  outage.ends.resolve();
  assertDoneOnce(await settled());
  assert.equal(await circuit(), 'closed');
  assert.match(await reasons(), /ECONNREFUSED/);
});
