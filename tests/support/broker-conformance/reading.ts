import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import {
  batchOf,
  failureOf,
  header,
  limits,
  onlyPartition,
  partitionsOf,
  positionAt,
  readAll,
  record,
  soon,
  topicWith,
  type Promises,
} from './fixtures.ts';

export const readingPromises: Promises = {
  'keeps every byte of a record': async (broker) => {
    const topic = await topicWith(broker, 1);
    const binary = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    const sent = [
      record(topic, { key: null, value: null }),
      record(topic, { key: Buffer.alloc(0), value: Buffer.alloc(0) }),
      record(topic, { key: binary, value: binary, headers: [{ key: binary, value: binary }] }),
      record(topic, {
        headers: [header('twice', 'a'), header('other', null), header('twice', 'b'), header('', '')],
      }),
    ];
    await broker.publish(sent, soon);
    const read = await readAll(broker, topic);
    assert.deepEqual(
      read.map(({ key, value, headers }) => ({ topic, key, value, headers })),
      sent,
    );
  },

  'keeps headers apart that share one buffer as their key': async (broker) => {
    const topic = await topicWith(broker, 1);
    const key = Buffer.from('same');
    const headers = [Buffer.from('1'), Buffer.from('2')].map((value) => ({ key, value }));
    await broker.publish([record(topic, { headers })], soon);
    assert.deepEqual((await readAll(broker, topic))[0]?.headers, headers);
  },

  'reads from the position and says where to read on': async (broker) => {
    const topic = await topicWith(broker, 1);
    await broker.publish(
      ['a', 'b', 'c'].map((value) => record(topic, { value: Buffer.from(value) })),
      soon,
    );
    const info = await onlyPartition(broker, topic);
    const [result] = await broker.fetch([positionAt(info, 1n)], limits);
    const batch = batchOf(result);
    assert.deepEqual(
      batch.records.map(({ offset, value }) => [offset, String(value)]),
      [
        [1n, 'b'],
        [2n, 'c'],
      ],
    );
    assert.deepEqual([batch.nextOffset, batch.start, batch.end, batch.stableEnd], [3n, 0n, 3n, 3n]);
    assert.deepEqual(batch.skipped, []);
  },

  'answers with nothing when nothing comes within the wait': async (broker) => {
    const topic = await topicWith(broker, 1);
    const info = await onlyPartition(broker, topic);
    const began = performance.now();
    const [result] = await broker.fetch([positionAt(info, 0n)], { ...limits, maxWaitMs: 60 });
    assert.ok(performance.now() - began >= 50);
    assert.deepEqual([batchOf(result).records.length, batchOf(result).nextOffset], [0, 0n]);
  },

  'answers as soon as a record comes': async (broker) => {
    const topic = await topicWith(broker, 1);
    const info = await onlyPartition(broker, topic);
    const began = performance.now();
    const fetching = broker.fetch([positionAt(info, 0n)], { ...limits, maxWaitMs: 5000 });
    await broker.publish([record(topic)], soon);
    assert.equal(batchOf((await fetching)[0]).records.length, 1);
    assert.ok(performance.now() - began < 4000);
  },

  'stops waiting when the signal says so': async (broker) => {
    const topic = await topicWith(broker, 1);
    const info = await onlyPartition(broker, topic);
    const stop = new AbortController();
    const fetching = broker.fetch([positionAt(info, 0n)], { ...limits, maxWaitMs: 1000 }, stop.signal);
    stop.abort();
    await assert.rejects(fetching, { name: 'AbortError' });
  },

  'goes on with small limits until everything is read, one record at the least': async (broker) => {
    const topic = await topicWith(broker, 1);
    for (let size = 0; size < 5; size++)
      await broker.publish([record(topic, { value: Buffer.alloc(2000) })], soon);
    const info = await onlyPartition(broker, topic);
    let offset = 0n;
    let fetches = 0;
    for (; offset < info.end; fetches++) {
      const small = { maxWaitMs: 200, maxBytes: 100, maxBytesPerPartition: 100 };
      const batch = batchOf((await broker.fetch([positionAt(info, offset)], small))[0]);
      assert.ok(batch.nextOffset > offset);
      offset = batch.nextOffset;
    }
    assert.equal(fetches, 5);
  },

  'finds the first offset at or after a time, and the end where there is none': async (broker) => {
    const topic = await topicWith(broker, 1);
    await broker.publish([record(topic), record(topic)], soon);
    const info = await onlyPartition(broker, topic);
    const hour = 3_600_000;
    assert.equal(await broker.offsetAt(info, BigInt(Date.now() - hour)), 0n);
    assert.equal(await broker.offsetAt(info, BigInt(Date.now() + hour)), 2n);
  },

  'answers for each position in order, whatever happens to another': async (broker) => {
    const topic = await topicWith(broker, 2);
    const other = await topicWith(broker, 1);
    await broker.publish([record(topic), record(topic), record(other)], soon);
    const [first, second] = await partitionsOf(broker, topic);
    assert.ok(first && second);
    const third = await onlyPartition(broker, other);
    const results = await broker.fetch(
      [
        positionAt(second, 0n),
        positionAt(first, 99n),
        { ...positionAt(first, 0n), topicId: randomUUID() },
        positionAt(third, 0n),
      ],
      limits,
    );
    assert.deepEqual(
      results.map((result) => [
        result.topic,
        result.partition,
        'error' in result ? result.error.kind : 'batch',
      ]),
      [
        [topic, 1, 'batch'],
        [topic, 0, 'out_of_range'],
        [topic, 0, 'gone'],
        [other, 0, 'batch'],
      ],
    );
  },

  'says what there is when the position is beyond the end': async (broker) => {
    const topic = await topicWith(broker, 1);
    await broker.publish([record(topic), record(topic)], soon);
    const info = await onlyPartition(broker, topic);
    const { error } = failureOf((await broker.fetch([positionAt(info, 7n)], limits))[0]);
    assert.deepEqual([error.kind, error.start, error.end], ['out_of_range', 0n, 2n]);
  },

  'says that a topic is gone after it was deleted, and after it was made again': async (broker) => {
    const topic = await topicWith(broker, 1);
    const info = await onlyPartition(broker, topic);
    await broker.deleteTopic(topic);
    assert.equal(failureOf((await broker.fetch([positionAt(info, 0n)], limits))[0]).error.kind, 'gone');
    await broker.createTopic(topic, 1);
    assert.equal(failureOf((await broker.fetch([positionAt(info, 0n)], limits))[0]).error.kind, 'gone');
    const again = await onlyPartition(broker, topic);
    assert.equal(batchOf((await broker.fetch([positionAt(again, 0n)], limits))[0]).records.length, 0);
  },
};
