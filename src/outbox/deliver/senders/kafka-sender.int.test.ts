import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { kafkaSettings, outgoingOrder } from '../../../../tests/support/destinations.ts';
import { unusedPort } from '../../../../tests/support/raw-server.ts';
import {
  headerTexts,
  needsKafka,
  openTestKafka,
  type TestKafka,
} from '../../../../tests/support/test-kafka.ts';
import { sha256Of } from '../../../kernel/canonical-json.ts';
import { createKafkaBroker } from '../../../platform/broker/kafka/kafka-broker.ts';
import type { SendOutcome } from '../../domain/order.ts';
import { createKafkaSender } from './kafka-sender.ts';

const running = new AbortController().signal;

let kafka: TestKafka;
before(() => {
  if (!('skip' in needsKafka)) kafka = openTestKafka();
});
after(() => kafka?.close());

const send = (
  sender: ReturnType<typeof createKafkaSender>,
  orders: Parameters<typeof sender>[0],
): Promise<readonly SendOutcome[]> => Promise.all(sender(orders, running));

test(
  'orders become records of the topic with key, value and headers, identified by their offset',
  needsKafka,
  async () => {
    const topic = await kafka.createTopic('orders.events.v1');
    const sender = createKafkaSender(kafkaSettings({ topic }), kafka.broker);
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const request = '{"qty": 12345678901234567890.10}';
    const first = outgoingOrder({ orderingKey: 'account-7', traceparent, request });
    const outcomes = await send(sender, [first, outgoingOrder()]);
    assert.deepEqual(
      outcomes,
      [0, 1].map((offset) => {
        const place = `${topic}-0@${offset}`;
        const answer = { status: null, digest: sha256Of(place), outsideId: place };
        return { end: 'sent', answer, isConflict: false };
      }),
    );
    const [record, second] = await kafka.read(topic);
    assert.deepEqual([String(record?.key), String(record?.value)], ['account-7', request]);
    assert.deepEqual(headerTexts(record?.headers ?? []), [
      ['idempotency-key', first.idempotencyKey],
      ['traceparent', traceparent],
    ]);
    assert.equal(second?.key, null);
  },
);

test("a record's key is what the settings say", needsKafka, async () => {
  const topic = await kafka.createTopic('keyed');
  const order = outgoingOrder({ orderingKey: 'account-7' });
  for (const key of ['ordering_key', 'idempotency_key', 'none'] as const)
    await send(createKafkaSender(kafkaSettings({ topic, key }), kafka.broker), [order]);
  assert.deepEqual(
    (await kafka.read(topic)).map(({ key }) => key?.toString() ?? null),
    ['account-7', order.idempotencyKey, null],
  );
});

test(
  'a record that the broker rejects is refused; later records of its key are released, others are sent',
  needsKafka,
  async () => {
    const topic = await kafka.createTopic('small');
    const huge = outgoingOrder({ orderingKey: 'a', request: `"${'x'.repeat(2_000_000)}"` });
    const [sameKey, otherKey] = [outgoingOrder({ orderingKey: 'a' }), outgoingOrder({ orderingKey: 'b' })];
    const sender = createKafkaSender(kafkaSettings({ topic, timeoutMs: 10_000 }), kafka.broker);
    const [refused, behind, other] = await send(sender, [huge, sameKey, otherKey]);
    assert.ok(refused?.end === 'refused' && refused.code === 'BAD_REQUEST');
    assert.match(refused.detail, /^(MESSAGE|RECORD)_TOO_LARGE|^RECORD_LIST_TOO_LARGE|TOO_LARGE/);
    assert.deepEqual([behind?.end, other?.end], ['released', 'sent']);
    const [unknown] = await send(
      createKafkaSender(kafkaSettings({ topic: kafka.name('none') }), kafka.broker),
      [outgoingOrder()],
    );
    assert.ok(unknown?.end === 'failed' && /UNKNOWN_TOPIC/.test(unknown.detail));
  },
);

test('an unreachable broker costs no retry', needsKafka, async () => {
  const brokers = [`127.0.0.1:${await unusedPort()}`];
  const broker = createKafkaBroker({ brokers, clientId: 'test', securityProtocol: 'PLAINTEXT' });
  const sender = createKafkaSender(kafkaSettings({ topic: 'any', timeoutMs: 1500 }), broker);
  const [outcome] = await send(sender, [outgoingOrder()]);
  await broker.close();
  assert.ok(outcome?.end === 'released', outcome?.end);
  assert.equal(outcome.retryAfterMs, 5000);
});
