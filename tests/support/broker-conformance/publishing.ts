import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type { OutgoingRecord } from '../../../src/platform/broker/port.ts';
import {
  batchOf,
  limits,
  newTopic,
  onlyPartition,
  partitionsOf,
  positionAt,
  readAll,
  record,
  soon,
  topicWith,
  type Promises,
} from './fixtures.ts';

export const publishingPromises: Promises = {
  'answers for each record in order, with its partition and offset': async (broker) => {
    const topic = await topicWith(broker, 4);
    const keys = Array.from({ length: 1200 }, (_, at) => Buffer.from(`key-${at % 7}`));
    const results = await broker.publish(
      keys.map((key, at) => record(topic, { key, value: Buffer.from(String(at)) })),
      soon,
    );
    const infos = await partitionsOf(broker, topic);
    const read = await Promise.all(
      infos.map(async (info) => batchOf((await broker.fetch([positionAt(info, 0n)], limits))[0]).records),
    );
    assert.equal(results.length, keys.length);
    for (const [at, result] of results.entries()) {
      assert.equal(result.result, 'acked');
      if (result.result !== 'acked') continue;
      assert.equal(String(read[result.partition]?.[Number(result.offset)]?.value), String(at));
    }
  },

  'keeps the order of many records of one partition': async (broker) => {
    const topic = await topicWith(broker, 1);
    const values = Array.from({ length: 3000 }, (_, at) => String(at));
    await broker.publish(
      values.map((value) => record(topic, { value: Buffer.from(value) })),
      soon,
    );
    assert.deepEqual(
      (await readAll(broker, topic)).map(({ value }) => String(value)),
      values,
    );
  },

  'keeps the order of each of several calls at once': async (broker) => {
    const topic = await topicWith(broker, 1);
    const calls = ['a', 'b', 'c'].map((call) => Array.from({ length: 600 }, (_, at) => `${call}${at}`));
    await Promise.all(
      calls.map((values) =>
        broker.publish(
          values.map((value) => record(topic, { value: Buffer.from(value) })),
          soon,
        ),
      ),
    );
    const read = (await readAll(broker, topic)).map(({ value }) => String(value));
    assert.equal(read.length, 1800);
    for (const values of calls)
      assert.deepEqual(
        read.filter((value) => value[0] === values[0]?.[0]),
        values,
      );
  },

  'puts equal keys into one partition and deals records without a key out in turn': async (broker) => {
    const topic = await topicWith(broker, 3);
    const keyed = await broker.publish(
      Array.from({ length: 5 }, () => record(topic, { key: Buffer.from('one key') })),
      soon,
    );
    assert.equal(new Set(keyed.map((result) => 'partition' in result && result.partition)).size, 1);
    const dealt = await broker.publish(
      Array.from({ length: 6 }, () => record(topic)),
      soon,
    );
    const partitions = dealt.map((result) => ('partition' in result ? result.partition : -1));
    assert.deepEqual(
      partitions.toSorted((a, b) => a - b),
      [0, 0, 1, 1, 2, 2],
    );
  },

  'has nothing to answer for no records': async (broker) => {
    assert.deepEqual(await broker.publish([], soon), []);
  },

  'refuses an unknown topic for good and publishes the other records': async (broker) => {
    const topic = await topicWith(broker, 1);
    const [unknown, known] = await broker.publish([record(newTopic()), record(topic)], soon);
    assert.ok(unknown?.result === 'failed');
    assert.deepEqual(
      [unknown.fault, unknown.retriable, unknown.code],
      ['topic', false, 'UNKNOWN_TOPIC_OR_PARTITION'],
    );
    assert.equal(known?.result, 'acked');
  },

  'refuses a record that is too large, holds back the rest of its key and sends everything else': async (
    broker,
  ) => {
    const topic = await topicWith(broker, 1);
    const of = (key: string | null, value: string | Buffer): OutgoingRecord =>
      record(topic, { key: key === null ? null : Buffer.from(key), value: Buffer.from(value) });
    const large = randomBytes(1_100_000);
    const results = await broker.publish(
      [
        of('a', '1'),
        of('b', '2'),
        of('a', large),
        of('b', '3'),
        of('a', '4'),
        of(null, large),
        of(null, '5'),
      ],
      soon,
    );
    assert.deepEqual(
      results.map(({ result }) => result),
      ['acked', 'acked', 'failed', 'acked', 'skipped', 'failed', 'acked'],
    );
    const [, , failed, , skipped] = results;
    assert.ok(failed?.result === 'failed' && skipped?.result === 'skipped');
    assert.deepEqual(
      [failed.fault, failed.retriable, failed.code, skipped.behind],
      ['record', false, 'MESSAGE_TOO_LARGE', 2],
    );
    assert.equal((await broker.publish([of('a', '4')], soon))[0]?.result, 'acked');
    assert.deepEqual(
      (await readAll(broker, topic)).map(({ value }) => String(value)),
      ['1', '2', '3', '5', '4'],
    );
  },

  'takes a large value that is small when compressed, with every codec, and tells the codec to readers':
    async (broker) => {
      const topic = await topicWith(broker, 1);
      // Beyond what a broker takes uncompressed; all of them together fit into a bounded local topic.
      const value = Buffer.alloc(1_400_000, 'abc ');
      const sent = ['gzip', 'snappy', 'lz4', 'zstd', 'unknown', 'none'] as const;
      const results = await broker.publish(
        sent.map((compression) => record(topic, { value, compression })),
        soon,
      );
      assert.deepEqual(
        results.map(({ result }) => result),
        ['acked', 'acked', 'acked', 'acked', 'acked', 'failed'],
      );
      const read = await readAll(broker, topic);
      assert.deepEqual(
        read.map(({ compression }) => compression),
        ['gzip', 'snappy', 'lz4', 'zstd', 'gzip'],
      );
      for (const one of read) assert.ok(one.value?.equals(value));
    },

  'keeps the order of a key whose records have different codecs': async (broker) => {
    const topic = await topicWith(broker, 1);
    const codecs = ['none', 'gzip', 'lz4'] as const;
    const results = await broker.publish(
      Array.from({ length: 60 }, (_, at) =>
        record(topic, {
          key: Buffer.from(`k${at % 2}`),
          value: Buffer.from(String(at)),
          compression: codecs[at % 3] ?? 'none',
        }),
      ),
      soon,
    );
    assert.deepEqual(new Set(results.map(({ result }) => result)), new Set(['acked']));
    const read = await readAll(broker, topic);
    for (const key of ['k0', 'k1']) {
      const values = read.filter((one) => String(one.key) === key).map(({ value }) => Number(value));
      assert.deepEqual(
        values,
        values.toSorted((a, b) => a - b),
      );
      assert.equal(values.length, 30);
    }
  },

  'writes the timestamp that a record brings': async (broker) => {
    const topic = await topicWith(broker, 1);
    const timestamp = BigInt(Date.now() - 60_000);
    await broker.publish([record(topic, { timestamp })], soon);
    assert.equal((await readAll(broker, topic))[0]?.timestamp, timestamp);
  },

  'names the topics that cannot be written to': async (broker) => {
    const [topic, missing] = [await topicWith(broker, 1), newTopic()];
    const troubles = await broker.unwritable([topic, missing]);
    assert.deepEqual([...troubles.keys()], [missing]);
    const trouble = troubles.get(missing);
    assert.deepEqual([trouble?.problem, trouble?.code], ['missing', 'UNKNOWN_TOPIC_OR_PARTITION']);
    assert.equal((await broker.unwritable([])).size, 0);
  },

  'takes a record of almost the largest size': async (broker) => {
    const topic = await topicWith(broker, 1);
    const value = Buffer.alloc(1_048_000, 'x');
    const results = await broker.publish([record(topic, { value }), record(topic)], soon);
    assert.deepEqual(
      results.map(({ result }) => result),
      ['acked', 'acked'],
    );
  },

  'writes nothing for a caller that has already given up': async (broker) => {
    const topic = await topicWith(broker, 1);
    for (const signal of [AbortSignal.abort(), AbortSignal.abort(new Error('for a reason'))]) {
      const [result] = await broker.publish([record(topic)], { ...soon, signal });
      assert.ok(result?.result === 'failed' && result.retriable);
      assert.equal(result.code, 'ABORTED');
    }
    assert.equal((await onlyPartition(broker, topic)).end, 0n);
  },
};
