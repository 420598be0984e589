import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kafkaSettings, outgoingOrder } from '../../../tests/support/destinations.ts';
import { createLocalBroker } from '../../platform/broker/local/local-broker.ts';
import type { Broker, PublishResult } from '../../platform/broker/port.ts';
import { createKafkaSender } from './kafka-sender.ts';

const running = new AbortController().signal;
const settings = kafkaSettings({ topic: 'orders.events.v1' });

/** The local broker with one word changed: what it says about records. */
const saying = (...results: readonly PublishResult[]): Broker => ({
  ...createLocalBroker(),
  publish: async () => results,
});

test('without Kafka orders wait, and are told why', async () => {
  assert.deepEqual(await Promise.all(createKafkaSender(settings, null)([outgoingOrder()], running)), [
    { end: 'released', reason: 'Kafka is disabled', retryAfterMs: 5000 },
  ]);
});

test('what comes when the process stops is given back, and nothing is published', async () => {
  const broker = createLocalBroker();
  await broker.createTopic(settings.topic, 1);
  const outcomes = createKafkaSender(settings, broker)([outgoingOrder()], AbortSignal.abort());
  assert.deepEqual(await Promise.all(outcomes), [
    { end: 'released', reason: 'the process stops', retryAfterMs: undefined },
  ]);
  const { partitions } = await broker.partitions(() => true);
  assert.equal(partitions[0]?.end, 0n);
});

test('each word of the broker has its outcome', async () => {
  const failed = { result: 'failed', code: 'X', message: 'why' } as const;
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

test('a broker that breaks leaves orders in doubt, and nobody is thrown at', async () => {
  const broker: Broker = { ...createLocalBroker(), publish: () => Promise.reject(new Error('broken')) };
  assert.deepEqual(await Promise.all(createKafkaSender(settings, broker)([outgoingOrder()], running)), [
    { end: 'unknown', code: 'NETWORK_TIMEOUT', detail: 'broken' },
  ]);
});
