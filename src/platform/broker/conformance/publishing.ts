import assert from 'node:assert/strict';
import type { OutgoingRecord } from '../port.ts';
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
    assert.deepEqual([unknown.retriable, unknown.code], [false, 'UNKNOWN_TOPIC_OR_PARTITION']);
    assert.equal(known?.result, 'acked');
  },

  'refuses a record that is too large and holds back those behind it in its partition': async (broker) => {
    const topic = await topicWith(broker, 1);
    const other = await topicWith(broker, 1);
    const large = record(topic, { value: Buffer.alloc(1_100_000) });
    const small = (value: string): OutgoingRecord => record(topic, { value: Buffer.from(value) });
    const results = await broker.publish(
      [small('1'), small('2'), large, small('3'), record(other), small('4')],
      soon,
    );
    assert.deepEqual(
      results.map(({ result }) => result),
      ['acked', 'acked', 'failed', 'skipped', 'acked', 'skipped'],
    );
    const [, , failed, third] = results;
    assert.ok(failed?.result === 'failed' && third?.result === 'skipped');
    assert.deepEqual([failed.retriable, failed.code, third.behind], [false, 'MESSAGE_TOO_LARGE', 2]);
    const again = await broker.publish([small('3'), small('4')], soon);
    assert.deepEqual(
      again.map((result) => 'offset' in result && result.offset),
      [2n, 3n],
    );
    assert.deepEqual(
      (await readAll(broker, topic)).map(({ value }) => String(value)),
      ['1', '2', '3', '4'],
    );
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
