import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from '../support/eventually.ts';
import { storyOf } from '../support/outbox-orders.ts';
import { startOutboxSystem, storedOrder, type OutboxSystem } from '../support/outbox-system.ts';
import { createEffectLedger } from '../support/partner.ts';
import { unusedPort } from '../support/raw-server.ts';
import { headerTexts, needsKafka, openTestKafka, type TestKafka } from '../support/test-kafka.ts';

/** Orders to topics of a real Kafka. The record is the effect; an unavailable broker costs no retry. */

describe('An order to a topic', { ...needsKafka, concurrency: true }, () => {
  let kafka: TestKafka;
  let outbox: OutboxSystem;
  let topic: string;
  before(async () => {
    kafka = openTestKafka();
    topic = await kafka.createTopic('orders.events.v1', 3);
    outbox = await startOutboxSystem({
      kafka: 'real',
      env: { ...kafka.env, OUTBOX_BACKOFF_INITIAL_MS: '300', OUTBOX_BACKOFF_MAX_MS: '3000' },
      destinations: () => ({
        events: { type: 'kafka', topic },
        by_key: { type: 'kafka', topic, key: 'idempotency_key' },
        later: { type: 'kafka', topic: kafka.name('made.later.v1') },
        strict: { type: 'kafka', topic, schema: 'order' },
      }),
    });
  });
  after(async () => {
    const effects = createEffectLedger();
    for (const name of [topic, kafka.name('made.later.v1')])
      for (const { headers, value } of await recordsOf(name))
        effects.add(headers.get('idempotency-key') ?? '', value);
    try {
      await outbox.conclude(effects);
    } finally {
      await kafka.close();
    }
  });

  const recordsOf = async (name: string) =>
    (await kafka.read(name)).map(({ key, value, headers, offset }) => {
      const texts = new Map(headerTexts(headers));
      return { key: key?.toString() ?? null, value: String(value), headers: texts, offset };
    });
  const recordOf = async (id: bigint) => {
    const row = await outbox.becomes(id, 'sent');
    const found = (await recordsOf(topic)).filter(
      ({ headers }) => headers.get('idempotency-key') === row.idempotency_key,
    );
    assert.equal(found.length, 1);
    return { row, record: found[0] ?? assert.fail() };
  };

  test('is a record with its request, its ordering key and its idempotency key', async () => {
    const request = { symbol: 'USDJPY', qty: 10_000, limit_price: 145.001 };
    const { row, record } = await recordOf(
      await outbox.order({ destination: 'events', ordering_key: 'account-7', request }),
    );
    assert.deepEqual(JSON.parse(record.value), request);
    assert.equal(record.key, 'account-7');
    assert.deepEqual([...record.headers.keys()], ['idempotency-key']);
    assert.deepEqual([row.retry_count, row.in_doubt, row.response?.status], [0, false, null]);
    assert.match(row.response?.broker_order_id ?? '', new RegExp(`^${topic}-[012]@${record.offset}$`));
  });

  test('has the configured record key', async () => {
    const { row, record } = await recordOf(await outbox.order({ destination: 'by_key' }));
    assert.equal(record.key, row.idempotency_key);
    const unkeyed = await recordOf(await outbox.order({ destination: 'events' }));
    assert.equal(unkeyed.record.key, null);
  });

  test('passes the trace of its request on', async () => {
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    const body = { destination: 'events', idempotency_key: 'traced-record', request: {} };
    const headers = { 'idempotency-key': 'traced-record', traceparent };
    const { body: answer } = await outbox.system.api.post<{ id: number }>(
      '/api/v1/outbox/orders',
      body,
      headers,
    );
    const { record } = await recordOf(BigInt(answer.id));
    assert.match(
      record.headers.get('traceparent') ?? '',
      /^00-4bf92f3577b34da6a3ce929d0e0e4736-[0-9a-f]{16}-01$/,
    );
  });

  test('of one ordering key comes after the earlier ones', async () => {
    const lanes = ['tokyo', 'osaka', 'nagoya'];
    for (let i = 0; i < 10; i++)
      for (const lane of lanes)
        await outbox.order({ destination: 'events', ordering_key: lane, request: { lane, i } });
    const records = await eventually(async () => {
      const found = (await recordsOf(topic)).filter(({ key }) => lanes.includes(key ?? ''));
      assert.equal(found.length, 30);
      return found;
    });
    for (const lane of lanes) {
      const numbers = records
        .filter(({ key }) => key === lane)
        .toSorted((a, b) => Number(a.offset - b.offset))
        .map(({ value }) => (JSON.parse(value) as { i: number }).i);
      assert.deepEqual(numbers, [...Array(10).keys()], lane);
    }
  });

  test('that violates its schema dies without a record', async () => {
    const [added] = await outbox.system.db.query<{ id: bigint }>(
      sql`SELECT id FROM outbox.add_order('{"symbol": 7}', 'flawed-record', 'strict')`,
    );
    const row = await outbox.becomes(added?.id ?? 0n, 'dead');
    assert.match(row.last_error ?? '', /^BAD_REQUEST: request\./);
    assert.equal(row.first_sent_at, null);
  });

  test('that does not exist yet is sent once it does', async () => {
    const destination = 'later';
    const ids = [
      await outbox.order({ destination, ordering_key: 'patient', request: { i: 0 } }),
      await outbox.order({ destination, ordering_key: 'patient', request: { i: 1 } }),
    ];
    await outbox.becomes(ids[0] ?? 0n, 'failed');
    const name = await kafka.createTopic('made.later.v1');
    for (const id of ids) assert.equal((await outbox.becomes(id, 'sent')).in_doubt, false);
    const numbers = (await recordsOf(name)).map(({ value }) => (JSON.parse(value) as { i: number }).i);
    assert.deepEqual(numbers, [0, 1]);
  });

  const unreachable = async () => ({
    KAFKA_ENABLED: 'true',
    KAFKA_BROKERS: `127.0.0.1:${await unusedPort()}`,
  });
  for (const [name, broker, story] of [
    ['is disabled', async () => ({ KAFKA_ENABLED: 'false' }), /^queued$/],
    ['cannot be reached', unreachable, /^queued > sending > queued/],
  ] as const)
    test(`whose broker ${name} waits without losing retries, and is sent once the broker is there`, async (t) => {
      const spare = await kafka.createTopic(`spare.${name.replaceAll(' ', '-')}`);
      const destinations = () => ({ spare: { type: 'kafka', topic: spare } });
      const lonely = await startOutboxSystem({ env: await broker(), destinations });
      t.after(() => lonely.drop());
      const { database, db, api } = lonely.system;
      const id = await lonely.order({ destination: 'spare' });
      await eventually(async () => {
        assert.match(await storyOf(db, id), story);
        assert.equal((await api.get<{ status: string }>('/readyz')).body.status, 'degraded');
      });
      const row = await storedOrder(db, id);
      assert.deepEqual([row.retry_count, row.first_sent_at, row.in_doubt], [0, null, false]);
      await lonely.system.stop();
      const { partner } = lonely;
      const { env } = kafka;
      const second = await startOutboxSystem({ kafka: 'real', env, database, partner, destinations });
      try {
        await second.becomes(id, 'sent');
      } finally {
        await second.drop();
      }
      assert.equal((await kafka.read(spare)).length, 1);
    });
});
