import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testBrokerConformance } from '../conformance.ts';
import {
  batchOf,
  failureOf,
  limits,
  newTopic,
  partitionsOf,
  positionAt,
  record,
} from '../conformance/fixtures.ts';
import { createLocalBroker } from './local-broker.ts';

testBrokerConformance('the local broker', async () => createLocalBroker());

const soon = { timeoutMs: 1000 } as const;

test('each start is another cluster with other topic ids', async () => {
  const topic = newTopic();
  const [one, two] = [createLocalBroker(), createLocalBroker()];
  for (const broker of [one, two]) await broker.createTopic(topic, 1);
  assert.notEqual(await one.clusterId(), await two.clusterId());
  const [first] = await partitionsOf(one, topic);
  const [second] = await partitionsOf(two, topic);
  assert.notEqual(first?.topicId, second?.topicId);
});

test('a partition keeps the newest records and tells a reader that was overtaken where to go on', async () => {
  const broker = createLocalBroker({ retention: { records: 3, bytes: 1_000_000 } });
  const topic = newTopic();
  await broker.createTopic(topic, 1);
  await broker.publish(
    Array.from({ length: 10 }, () => record(topic)),
    soon,
  );
  const [info] = await partitionsOf(broker, topic);
  assert.ok(info);
  assert.deepEqual([info.start, info.end], [7n, 10n]);
  const { error } = failureOf((await broker.fetch([positionAt(info, 2n)], limits))[0]);
  assert.deepEqual([error.kind, error.start, error.end], ['out_of_range', 7n, 10n]);
  assert.equal(batchOf((await broker.fetch([positionAt(info, 7n)], limits))[0]).records.length, 3);
});

test('a partition stays within its bytes but always keeps the last record', async () => {
  const broker = createLocalBroker({ retention: { records: 100, bytes: 1000 } });
  const topic = newTopic();
  await broker.createTopic(topic, 1);
  await broker.publish(
    Array.from({ length: 10 }, () => record(topic, { value: Buffer.alloc(300) })),
    soon,
  );
  assert.deepEqual(
    (await partitionsOf(broker, topic)).map(({ start }) => start),
    [7n],
  );
  await broker.publish([record(topic, { value: Buffer.alloc(5000) })], soon);
  assert.deepEqual(
    (await partitionsOf(broker, topic)).map(({ start }) => start),
    [10n],
  );
});

test('what was published does not change with the buffer of its publisher', async () => {
  const broker = createLocalBroker();
  const topic = newTopic();
  await broker.createTopic(topic, 1);
  const value = Buffer.from('before');
  await broker.publish([record(topic, { value })], soon);
  value.fill('x');
  const [info] = await partitionsOf(broker, topic);
  assert.ok(info);
  const [read] = batchOf((await broker.fetch([positionAt(info, 0n)], limits))[0]).records;
  assert.equal(String(read?.value), 'before');
});

test('records carry the time of the clock', async () => {
  const at = new Date('2026-01-02T03:04:05.678Z');
  const broker = createLocalBroker({ clock: { now: () => at, monotonicMs: () => 0 } });
  const topic = newTopic();
  await broker.createTopic(topic, 1);
  await broker.publish([record(topic)], soon);
  const [info] = await partitionsOf(broker, topic);
  assert.ok(info);
  assert.equal(await broker.offsetAt(info, BigInt(at.getTime())), 0n);
  assert.equal(await broker.offsetAt(info, BigInt(at.getTime() + 1)), 1n);
});
