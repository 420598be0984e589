import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kafkaSettings, outgoingOrder } from '../../../../tests/support/destinations.ts';
import { createLocalBroker } from '../../../platform/broker/local/local-broker.ts';
import type { Broker, PublishResult } from '../../../platform/broker/port.ts';
import { createKafkaSender } from './kafka-sender.ts';

const running = new AbortController().signal;
const settings = kafkaSettings({ topic: 'orders.events.v1' });

/** The local broker with another publish result. */
const saying = (...results: readonly PublishResult[]): Broker => ({
  ...createLocalBroker(),
  publish: async () => results,
});

test('without Kafka orders are released with the reason', async () => {
  assert.deepEqual(await Promise.all(createKafkaSender(settings, null)([outgoingOrder()], running)), [
    { end: 'released', reason: 'Kafka is disabled', retryAfterMs: 5000 },
  ]);
});

test('orders during shutdown are released, and nothing is published', async () => {
  const broker = createLocalBroker();
  await broker.createTopic(settings.topic, 1);
  const outcomes = createKafkaSender(settings, broker)([outgoingOrder()], AbortSignal.abort());
  assert.deepEqual(await Promise.all(outcomes), [
    { end: 'released', reason: 'shutting down', retryAfterMs: undefined },
  ]);
  const { partitions } = await broker.partitions(() => true);
  assert.equal(partitions[0]?.end, 0n);
});

test('every result of the broker has its outcome', async () => {
  const failed = { result: 'failed', fault: 'record', code: 'X', message: 'why' } as const;
  const broker = saying(
    { result: 'acked', partition: 3, offset: 9n },
    { ...failed, retriable: true },
    { ...failed, retriable: false },
    { ...failed, retriable: false, code: 'TOPIC_AUTHORIZATION_FAILED' },
    { result: 'unknown', code: 'X', message: 'no answer' },
    { result: 'skipped', behind: 1 },
  );
  const orders = Array.from({ length: 7 }, () => outgoingOrder());
  const outcomes = await Promise.all(createKafkaSender(settings, broker)(orders, running));
  assert.deepEqual(
    outcomes.map((outcome) => ('code' in outcome ? `${outcome.end} ${outcome.code}` : outcome.end)),
    [
      'sent',
      'released',
      'refused BAD_REQUEST',
      'refused UNAUTHORIZED',
      'unknown NETWORK_TIMEOUT',
      'released',
      'unknown NETWORK_TIMEOUT',
    ],
  );
  assert.equal(outcomes[1]?.end === 'released' && outcomes[1].retryAfterMs, 5000);
});

test('a broker that throws leaves orders in doubt', async () => {
  const broker: Broker = { ...createLocalBroker(), publish: () => Promise.reject(new Error('broken')) };
  assert.deepEqual(await Promise.all(createKafkaSender(settings, broker)([outgoingOrder()], running)), [
    { end: 'unknown', code: 'NETWORK_TIMEOUT', detail: 'broken' },
  ]);
});
