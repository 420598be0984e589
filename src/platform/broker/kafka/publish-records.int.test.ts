import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { kafkaForTests, whyNoKafka, type SharedKafka } from '../../../../tools/kafka/kafka-for-tests.ts';
import {
  newTopic,
  partitionsOf,
  readAll,
  record,
} from '../../../../tests/support/broker-conformance/fixtures.ts';
import { partitionOfKey } from '../partitioner.ts';
import type { Broker, PublishResult } from '../port.ts';
import { createKafkaBroker } from './kafka-broker.ts';

const soon = { timeoutMs: 10_000 } as const;

const outcomes = (results: readonly PublishResult[]): readonly string[] =>
  results.map(({ result }) => result);

describe('Publishing to Kafka', { skip: await whyNoKafka() }, () => {
  let kafka: SharedKafka;
  let broker: Broker;
  const open = (): Broker =>
    createKafkaBroker({
      brokers: kafka.brokers.split(','),
      securityProtocol: 'PLAINTEXT',
      clientId: 'redrive-test',
    });
  before(async () => {
    kafka = await kafkaForTests();
    broker = open();
  });
  after(async () => {
    await broker.close();
    await kafka.stop();
  });

  const topicWithConfig = async (config: string): Promise<string> => {
    const topic = newTopic();
    const create = ['--bootstrap-server', kafka.brokers, '--create', '--topic', topic];
    const args = [...create, '--partitions', '1', '--config', config];
    const { code, stderr } = await kafka.javaTool('org.apache.kafka.tools.TopicCommand', args);
    assert.equal(code, 0, stderr);
    return topic;
  };

  it('divides batches until they fit a topic that takes only small ones', async () => {
    const topic = await topicWithConfig('max.message.bytes=20000');
    const values = Array.from({ length: 300 }, (_, at) => Buffer.from(String(at).padEnd(1000)));
    const results = await broker.publish(
      values.map((value) => record(topic, { value })),
      soon,
    );
    assert.deepEqual(new Set(outcomes(results)), new Set(['acked']));
    assert.deepEqual(
      (await readAll(broker, topic)).map(({ value }) => value),
      values,
    );
  });

  it('finds the one record that a topic refuses, and every other one is written', async () => {
    const topic = await topicWithConfig('cleanup.policy=compact');
    const keys = ['a', 'b', null, 'c', ...Array.from({ length: 400 }, (_, at) => `k${at}`)];
    const results = await broker.publish(
      keys.map((key) => record(topic, { key: key === null ? null : Buffer.from(key) })),
      soon,
    );
    const [refused, ...others] = results.filter(({ result }) => result !== 'acked');
    assert.ok(refused?.result === 'failed' && refused === results[2]);
    assert.deepEqual([refused.code, refused.fault, refused.retriable], ['INVALID_RECORD', 'record', false]);
    assert.deepEqual(others, []);
  });

  it('refuses to write into the topics that Kafka keeps for itself', async () => {
    await broker.committed('any-group', [{ topic: 't', topicId: 'i', partition: 0 }]);
    const [result] = await broker.publish([record('__consumer_offsets')], soon);
    assert.ok(result?.result === 'failed');
    assert.deepEqual(
      [result.code, result.fault, result.retriable],
      ['INVALID_TOPIC_EXCEPTION', 'topic', false],
    );
  });

  it('goes on after a topic was made again with fewer partitions', async () => {
    const topic = newTopic();
    await broker.createTopic(topic, 3);
    const key = ['a', 'b', 'c', 'd', 'e']
      .map((text) => Buffer.from(text))
      .find((bytes) => partitionOfKey(bytes, 3) === 2);
    assert.ok(key);
    await broker.publish([record(topic, { key })], soon);
    const another = open();
    await another.deleteTopic(topic);
    await another.createTopic(topic, 1);
    const [failed] = await broker.publish([record(topic, { key })], soon);
    assert.ok(failed?.result === 'failed' && failed.retriable && failed.fault === 'cluster');
    const [acked] = await broker.publish([record(topic, { key })], soon);
    assert.deepEqual(acked, { result: 'acked', partition: 0, offset: 0n });
    await another.close();
  });

  it('does not call a record written when the offsets stop growing', async () => {
    const topic = newTopic();
    await broker.createTopic(topic, 1);
    await broker.publish(
      Array.from({ length: 5 }, () => record(topic)),
      soon,
    );
    const another = open();
    await another.deleteTopic(topic);
    await another.createTopic(topic, 1);
    const [doubtful] = await broker.publish([record(topic)], soon);
    assert.ok(doubtful?.result === 'unknown');
    assert.equal(doubtful.code, 'OFFSET_NOT_GROWING');
    assert.deepEqual(outcomes(await broker.publish([record(topic)], soon)), ['acked']);
    await another.close();
  });

  it('writes a topic that was created after it was first refused', async () => {
    const topic = newTopic();
    assert.deepEqual(outcomes(await broker.publish([record(topic)], soon)), ['failed']);
    await broker.createTopic(topic, 1);
    assert.deepEqual(outcomes(await broker.publish([record(topic)], soon)), ['acked']);
  });

  it('spreads more batches than it may have under way over many partitions', async () => {
    const topic = newTopic();
    await broker.createTopic(topic, 40);
    const results = await broker.publish(
      Array.from({ length: 2000 }, () => record(topic)),
      soon,
    );
    assert.deepEqual(new Set(outcomes(results)), new Set(['acked']));
    assert.deepEqual(new Set((await partitionsOf(broker, topic)).map(({ end }) => end)), new Set([50n]));
  });
});
