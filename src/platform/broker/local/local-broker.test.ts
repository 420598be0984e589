import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testBrokerConformance } from '../../../../tests/support/broker-conformance.ts';
import {
  batchOf,
  failureOf,
  limits,
  newTopic,
  partitionsOf,
  positionAt,
  record,
} from '../../../../tests/support/broker-conformance/fixtures.ts';
import { createLocalBroker } from './local-broker.ts';
import { storedBytes } from './local-log.ts';

testBrokerConformance('the local broker', async () => createLocalBroker());

const soon = { timeoutMs: 1000 } as const;

test('each start has a new cluster id and new topic ids', async () => {
  const topic = newTopic();
  const [one, two] = [createLocalBroker(), createLocalBroker()];
  for (const broker of [one, two]) await broker.createTopic(topic, 1);
  assert.notEqual(await one.clusterId(), await two.clusterId());
  const [first] = await partitionsOf(one, topic);
  const [second] = await partitionsOf(two, topic);
  assert.notEqual(first?.topicId, second?.topicId);
});

test('a topic keeps its newest records, and a fetch below the log start returns where the log begins', async () => {
  const broker = createLocalBroker({ bytesPerTopic: 3 * storedBytes(record('any')) });
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

test('small records count with their objects, which take more memory than their bytes', async () => {
  const broker = createLocalBroker({ bytesPerTopic: 1_000_000 });
  const topic = newTopic();
  await broker.createTopic(topic, 1);
  const small = record(topic, { value: Buffer.from('1') });
  await broker.publish(
    Array.from({ length: 5000 }, () => small),
    soon,
  );
  const [info] = await partitionsOf(broker, topic);
  assert.ok(info && info.end - info.start < 2500n, `${info?.start} to ${info?.end}`);
});

test('the partitions of a topic share its bytes, and each always keeps its last record', async () => {
  const small = record('any', { value: Buffer.alloc(300) });
  const broker = createLocalBroker({ bytesPerTopic: 6 * storedBytes(small) });
  const topic = newTopic();
  await broker.createTopic(topic, 2);
  await broker.publish(
    Array.from({ length: 20 }, () => ({ ...small, topic })),
    soon,
  );
  assert.deepEqual(
    (await partitionsOf(broker, topic)).map(({ start, end }) => [start, end]),
    [
      [7n, 10n],
      [7n, 10n],
    ],
  );
  await broker.publish([record(topic, { value: Buffer.alloc(50_000) })], soon);
  assert.deepEqual(
    (await partitionsOf(broker, topic)).map(({ start, end }) => [start, end]),
    [
      [10n, 11n],
      [7n, 10n],
    ],
  );
});

test('a stored record keeps only its own memory alive', async () => {
  const broker = createLocalBroker();
  const topic = newTopic();
  await broker.createTopic(topic, 1);
  const [key, value] = [Buffer.from('key'), Buffer.from('value')];
  await broker.publish([record(topic, { key, value, headers: [{ key, value }] })], soon);
  const [info] = await partitionsOf(broker, topic);
  assert.ok(info);
  const [read] = batchOf((await broker.fetch([positionAt(info, 0n)], limits))[0]).records;
  const [header] = read?.headers ?? [];
  const stored = [read?.key, read?.value, header?.key, header?.value];
  assert.deepEqual(stored.map(String), ['key', 'value', 'key', 'value']);
  for (const bytes of stored) assert.ok((bytes?.buffer.byteLength ?? Infinity) <= 'keyvaluekeyvalue'.length);
});

test('a stored record does not change with the buffer of its publisher', async () => {
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

test('records have the time of the clock', async () => {
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
