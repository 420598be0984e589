import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import {
  mirrorMark,
  type Broker,
  type BrokerRecord,
  type FetchedBatch,
  type FetchFailure,
  type FetchResult,
  type Header,
  type OutgoingRecord,
  type PartitionInfo,
  type Position,
} from './port.ts';

export const newTopic = (): string => `test.${randomUUID()}`;

export const limits = { maxWaitMs: 200, maxBytes: 10_000_000, maxBytesPerPartition: 1_000_000 } as const;

export const record = (topic: string, more: Partial<OutgoingRecord> = {}): OutgoingRecord => ({
  topic,
  key: null,
  value: Buffer.from('value'),
  headers: [],
  ...more,
});

export const header = (key: string, value: string | null): Header => ({
  key: Buffer.from(key),
  value: value === null ? null : Buffer.from(value),
});

export async function partitionsOf(broker: Broker, topic: string): Promise<readonly PartitionInfo[]> {
  const { partitions } = await broker.partitions((name) => name === topic);
  return partitions.toSorted((a, b) => a.partition - b.partition);
}

export const positionAt = ({ topic, topicId, partition }: PartitionInfo, offset: bigint): Position => ({
  topic,
  topicId,
  partition,
  offset,
});

export function batchOf(result: FetchResult | undefined): FetchedBatch {
  assert.ok(result && !('error' in result), `not a batch: ${JSON.stringify(result && 'error' in result && result.error.code)}`);
  return result;
}

export function failureOf(result: FetchResult | undefined): FetchFailure {
  assert.ok(result && 'error' in result, 'not a failure');
  return result;
}

/** All records of the topic, partition by partition, read until the ends that were listed at the beginning. */
export async function readAll(broker: Broker, topic: string): Promise<readonly BrokerRecord[]> {
  const records: BrokerRecord[] = [];
  for (const info of await partitionsOf(broker, topic)) {
    let offset = info.start;
    while (offset < info.end) {
      const [result] = await broker.fetch([positionAt(info, offset)], limits);
      const batch = batchOf(result);
      records.push(...batch.records);
      offset = batch.nextOffset;
    }
  }
  return records;
}

async function topicWith(broker: Broker, partitions: number): Promise<string> {
  const topic = newTopic();
  await broker.createTopic(topic, partitions);
  return topic;
}

async function onlyPartition(broker: Broker, topic: string): Promise<PartitionInfo> {
  const [info] = await partitionsOf(broker, topic);
  assert.ok(info);
  return info;
}

const soon = { timeoutMs: 10_000 } as const;

/** Registers what every broker promises. The factory gives a broker on a cluster of its own choosing. */
export function testBrokerConformance(name: string, createBroker: () => Promise<Broker>): void {
  describe(`${name} keeps the promises of the broker port`, () => {
    let broker: Broker;
    before(async () => {
      broker = await createBroker();
    });
    after(() => broker.close());

    testListing(() => broker);
    testReading(() => broker);
    testFailures(() => broker);
    testPublishing(() => broker);
    testRefusals(() => broker);
    testGroups(() => broker);
    testClosing(createBroker);
  });
}

function testListing(use: () => Broker): void {
  it('names its cluster, always the same', async () => {
    const id = await use().clusterId();
    assert.notEqual(id, '');
    assert.equal(await use().clusterId(), id);
    assert.equal((await use().partitions(() => false)).clusterId, id);
  });

  it('lists the partitions of the topics that match, with their ends', async () => {
    const topic = await topicWith(use(), 3);
    await topicWith(use(), 1);
    const empty = await partitionsOf(use(), topic);
    assert.deepEqual(
      empty.map(({ partition, start, end }) => [partition, start, end]),
      [0, 1, 2].map((partition) => [partition, 0n, 0n]),
    );
    assert.equal(new Set(empty.map(({ topicId }) => topicId)).size, 1);
    await use().publish([record(topic), record(topic), record(topic)], soon);
    assert.deepEqual(
      (await partitionsOf(use(), topic)).map(({ end }) => end),
      [1n, 1n, 1n],
    );
  });

  it('leaves an existing topic as it is when it is created again', async () => {
    const topic = await topicWith(use(), 2);
    const before = await partitionsOf(use(), topic);
    await use().createTopic(topic, 5);
    assert.deepEqual(await partitionsOf(use(), topic), before);
  });

  it('gives a topic that was deleted and made again another id', async () => {
    const topic = await topicWith(use(), 1);
    const { topicId } = await onlyPartition(use(), topic);
    await use().deleteTopic(topic);
    assert.deepEqual(await partitionsOf(use(), topic), []);
    await use().createTopic(topic, 1);
    assert.notEqual((await onlyPartition(use(), topic)).topicId, topicId);
  });
}

function testReading(use: () => Broker): void {
  it('keeps every byte of a record', async () => {
    const topic = await topicWith(use(), 1);
    const binary = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    const sent = [
      record(topic, { key: null, value: null }),
      record(topic, { key: Buffer.alloc(0), value: Buffer.alloc(0) }),
      record(topic, { key: binary, value: binary, headers: [{ key: binary, value: binary }] }),
      record(topic, { headers: [header('twice', 'a'), header('other', null), header('twice', 'b'), header('', '')] }),
    ];
    await use().publish(sent, soon);
    const read = await readAll(use(), topic);
    assert.deepEqual(
      read.map(({ key, value, headers }) => ({ topic, key, value, headers })),
      sent,
    );
  });

  it('keeps headers apart that share one buffer as their key', async () => {
    const topic = await topicWith(use(), 1);
    const key = Buffer.from('same');
    const headers = [Buffer.from('1'), Buffer.from('2')].map((value) => ({ key, value }));
    await use().publish([record(topic, { headers })], soon);
    assert.deepEqual((await readAll(use(), topic))[0]?.headers, headers);
  });

  it('reads from the position and says where to read on', async () => {
    const topic = await topicWith(use(), 1);
    await use().publish(
      ['a', 'b', 'c'].map((value) => record(topic, { value: Buffer.from(value) })),
      soon,
    );
    const info = await onlyPartition(use(), topic);
    const [result] = await use().fetch([positionAt(info, 1n)], limits);
    const batch = batchOf(result);
    assert.deepEqual(
      batch.records.map(({ offset, value }) => [offset, String(value)]),
      [
        [1n, 'b'],
        [2n, 'c'],
      ],
    );
    assert.deepEqual([batch.nextOffset, batch.notRecords, batch.start, batch.end], [3n, 0n, 0n, 3n]);
  });

  it('answers with nothing when nothing comes within the wait', async () => {
    const topic = await topicWith(use(), 1);
    const info = await onlyPartition(use(), topic);
    const began = performance.now();
    const [result] = await use().fetch([positionAt(info, 0n)], { ...limits, maxWaitMs: 60 });
    assert.ok(performance.now() - began >= 50);
    assert.deepEqual([batchOf(result).records.length, batchOf(result).nextOffset], [0, 0n]);
  });

  it('answers as soon as a record comes', async () => {
    const topic = await topicWith(use(), 1);
    const info = await onlyPartition(use(), topic);
    const began = performance.now();
    const fetching = use().fetch([positionAt(info, 0n)], { ...limits, maxWaitMs: 5000 });
    await use().publish([record(topic)], soon);
    assert.equal(batchOf((await fetching)[0]).records.length, 1);
    assert.ok(performance.now() - began < 4000);
  });

  it('stops waiting when the signal says so', async () => {
    const topic = await topicWith(use(), 1);
    const info = await onlyPartition(use(), topic);
    const stop = new AbortController();
    const fetching = use().fetch([positionAt(info, 0n)], { ...limits, maxWaitMs: 1000 }, stop.signal);
    stop.abort();
    await assert.rejects(fetching, { name: 'AbortError' });
  });

  it('goes on with small limits until everything is read, one record at the least', async () => {
    const topic = await topicWith(use(), 1);
    for (let size = 0; size < 5; size++) await use().publish([record(topic, { value: Buffer.alloc(2000) })], soon);
    const info = await onlyPartition(use(), topic);
    let offset = 0n;
    let fetches = 0;
    for (; offset < info.end; fetches++) {
      const small = { maxWaitMs: 200, maxBytes: 100, maxBytesPerPartition: 100 };
      const batch = batchOf((await use().fetch([positionAt(info, offset)], small))[0]);
      assert.ok(batch.nextOffset > offset);
      offset = batch.nextOffset;
    }
    assert.equal(fetches, 5);
  });

  it('finds the first offset at or after a time, and the end where there is none', async () => {
    const topic = await topicWith(use(), 1);
    await use().publish([record(topic), record(topic)], soon);
    const info = await onlyPartition(use(), topic);
    const hour = 3_600_000;
    assert.equal(await use().offsetAt(info, BigInt(Date.now() - hour)), 0n);
    assert.equal(await use().offsetAt(info, BigInt(Date.now() + hour)), 2n);
  });
}

function testFailures(use: () => Broker): void {
  it('answers for each position in order, whatever happens to another', async () => {
    const topic = await topicWith(use(), 2);
    const other = await topicWith(use(), 1);
    await use().publish([record(topic), record(topic), record(other)], soon);
    const [first, second] = await partitionsOf(use(), topic);
    assert.ok(first && second);
    const third = await onlyPartition(use(), other);
    const results = await use().fetch(
      [positionAt(second, 0n), positionAt(first, 99n), { ...positionAt(first, 0n), topicId: randomUUID() }, positionAt(third, 0n)],
      limits,
    );
    assert.deepEqual(
      results.map((result) => [result.topic, result.partition, 'error' in result ? result.error.kind : 'batch']),
      [
        [topic, 1, 'batch'],
        [topic, 0, 'out_of_range'],
        [topic, 0, 'gone'],
        [other, 0, 'batch'],
      ],
    );
  });

  it('says what there is when the position is beyond the end', async () => {
    const topic = await topicWith(use(), 1);
    await use().publish([record(topic), record(topic)], soon);
    const info = await onlyPartition(use(), topic);
    const { error } = failureOf((await use().fetch([positionAt(info, 7n)], limits))[0]);
    assert.deepEqual([error.kind, error.start, error.end], ['out_of_range', 0n, 2n]);
  });

  it('says that a topic is gone after it was deleted, and after it was made again', async () => {
    const topic = await topicWith(use(), 1);
    const info = await onlyPartition(use(), topic);
    await use().deleteTopic(topic);
    assert.equal(failureOf((await use().fetch([positionAt(info, 0n)], limits))[0]).error.kind, 'gone');
    await use().createTopic(topic, 1);
    assert.equal(failureOf((await use().fetch([positionAt(info, 0n)], limits))[0]).error.kind, 'gone');
    const again = await onlyPartition(use(), topic);
    assert.equal(batchOf((await use().fetch([positionAt(again, 0n)], limits))[0]).records.length, 0);
  });
}

function testPublishing(use: () => Broker): void {
  it('answers for each record in order, with its partition and offset', async () => {
    const topic = await topicWith(use(), 4);
    const keys = Array.from({ length: 1200 }, (_, at) => Buffer.from(`key-${at % 7}`));
    const results = await use().publish(
      keys.map((key, at) => record(topic, { key, value: Buffer.from(String(at)) })),
      soon,
    );
    const infos = await partitionsOf(use(), topic);
    const read = await Promise.all(
      infos.map(async (info) => batchOf((await use().fetch([positionAt(info, 0n)], limits))[0]).records),
    );
    assert.equal(results.length, keys.length);
    for (const [at, result] of results.entries()) {
      assert.equal(result.result, 'acked');
      if (result.result !== 'acked') continue;
      assert.equal(String(read[result.partition]?.[Number(result.offset)]?.value), String(at));
    }
  });

  it('keeps the order of many records of one partition', async () => {
    const topic = await topicWith(use(), 1);
    const values = Array.from({ length: 3000 }, (_, at) => String(at));
    await use().publish(
      values.map((value) => record(topic, { value: Buffer.from(value) })),
      soon,
    );
    assert.deepEqual((await readAll(use(), topic)).map(({ value }) => String(value)), values);
  });

  it('keeps the order of each of several calls at once', async () => {
    const topic = await topicWith(use(), 1);
    const calls = ['a', 'b', 'c'].map((call) => Array.from({ length: 600 }, (_, at) => `${call}${at}`));
    await Promise.all(
      calls.map((values) =>
        use().publish(
          values.map((value) => record(topic, { value: Buffer.from(value) })),
          soon,
        ),
      ),
    );
    const read = (await readAll(use(), topic)).map(({ value }) => String(value));
    assert.equal(read.length, 1800);
    for (const values of calls)
      assert.deepEqual(
        read.filter((value) => value[0] === values[0]?.[0]),
        values,
      );
  });

  it('puts equal keys into one partition and deals records without a key out in turn', async () => {
    const topic = await topicWith(use(), 3);
    const keyed = await use().publish(
      Array.from({ length: 5 }, () => record(topic, { key: Buffer.from('one key') })),
      soon,
    );
    assert.equal(new Set(keyed.map((result) => 'partition' in result && result.partition)).size, 1);
    const dealt = await use().publish(Array.from({ length: 6 }, () => record(topic)), soon);
    const partitions = dealt.map((result) => ('partition' in result ? result.partition : -1));
    assert.deepEqual(partitions.toSorted(), [0, 0, 1, 1, 2, 2]);
  });

  it('has nothing to answer for no records', async () => {
    assert.deepEqual(await use().publish([], soon), []);
  });
}

function testRefusals(use: () => Broker): void {
  it('refuses an unknown topic for good and publishes the other records', async () => {
    const topic = await topicWith(use(), 1);
    const [unknown, known] = await use().publish([record(newTopic()), record(topic)], soon);
    assert.ok(unknown?.result === 'failed');
    assert.deepEqual([unknown.retriable, unknown.code], [false, 'UNKNOWN_TOPIC_OR_PARTITION']);
    assert.equal(known?.result, 'acked');
  });

  it('refuses a record that is too large and holds back those behind it in its partition', async () => {
    const topic = await topicWith(use(), 1);
    const other = await topicWith(use(), 1);
    const large = record(topic, { value: Buffer.alloc(1_100_000) });
    const small = (value: string): OutgoingRecord => record(topic, { value: Buffer.from(value) });
    const results = await use().publish([small('1'), small('2'), large, small('3'), record(other), small('4')], soon);
    assert.deepEqual(
      results.map(({ result }) => result),
      ['acked', 'acked', 'failed', 'skipped', 'acked', 'skipped'],
    );
    const [, , failed, third] = results;
    assert.ok(failed?.result === 'failed' && third?.result === 'skipped');
    assert.deepEqual([failed.retriable, failed.code, third.behind], [false, 'MESSAGE_TOO_LARGE', 2]);
    const again = await use().publish([small('3'), small('4')], soon);
    assert.deepEqual(
      again.map((result) => 'offset' in result && result.offset),
      [2n, 3n],
    );
    assert.deepEqual((await readAll(use(), topic)).map(({ value }) => String(value)), ['1', '2', '3', '4']);
  });

  it('takes a record of almost the largest size', async () => {
    const topic = await topicWith(use(), 1);
    const value = Buffer.alloc(1_048_000, 'x');
    const results = await use().publish([record(topic, { value }), record(topic)], soon);
    assert.deepEqual(
      results.map(({ result }) => result),
      ['acked', 'acked'],
    );
  });

  it('writes nothing for a caller that has already given up', async () => {
    const topic = await topicWith(use(), 1);
    const [result] = await use().publish([record(topic)], { ...soon, signal: AbortSignal.abort() });
    assert.ok(result?.result === 'failed' && result.retriable);
    assert.equal(result.code, 'ABORTED');
    assert.equal((await onlyPartition(use(), topic)).end, 0n);
  });
}

function testGroups(use: () => Broker): void {
  it('knows no offsets of a group that never committed', async () => {
    const topic = await topicWith(use(), 1);
    assert.deepEqual(await use().committed(`group-${randomUUID()}`, await partitionsOf(use(), topic)), []);
  });

  it('mirrors positions to a group with a mark that carries the topic id', async () => {
    const topic = await topicWith(use(), 2);
    const group = `group-${randomUUID()}`;
    await use().publish([record(topic), record(topic)], soon);
    const infos = await partitionsOf(use(), topic);
    const [first] = infos;
    assert.ok(first);
    await use().mirror(group, [positionAt(first, 1n)]);
    assert.deepEqual(await use().committed(group, infos), [
      { ...positionAt(first, 1n), metadata: mirrorMark(first.topicId) },
    ]);
  });

  it('does not mirror a position of a topic that is no longer this one', async () => {
    const topic = await topicWith(use(), 1);
    const group = `group-${randomUUID()}`;
    const info = await onlyPartition(use(), topic);
    await use().mirror(group, [{ ...positionAt(info, 1n), topicId: randomUUID() }]);
    assert.deepEqual(await use().committed(group, [info]), []);
  });
}

function testClosing(createBroker: () => Promise<Broker>): void {
  it('ends what waits when it is closed, and answers no more', async () => {
    const broker = await createBroker();
    const topic = await topicWith(broker, 1);
    const info = await onlyPartition(broker, topic);
    const fetching = broker.fetch([positionAt(info, 0n)], { ...limits, maxWaitMs: 5000 });
    const began = performance.now();
    await Promise.all([assert.rejects(fetching), broker.close()]);
    assert.ok(performance.now() - began < 3000);
    await assert.rejects(broker.clusterId(), { code: 'SYS_BROKER_CLOSED' });
    const [result] = await broker.publish([record(topic)], soon);
    assert.ok(result?.result === 'failed' && result.retriable);
    await broker.close();
  });
}
