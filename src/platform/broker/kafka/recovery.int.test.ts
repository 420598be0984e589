import assert from 'node:assert/strict';
import { mkdtemp, open as openFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Admin, Producer } from '@platformatic/kafka';
import { whyNoKafka } from '../../../../tools/kafka/kafka-for-tests.ts';
import { startKafka, type RunningKafka } from '../../../../tools/kafka/start-kafka.ts';
import { sleep } from '../../../kernel/clock.ts';
import {
  batchOf,
  failureOf,
  limits,
  newTopic,
  partitionsOf,
  positionAt,
  readAll,
  record,
} from '../../../../tests/support/broker-conformance/fixtures.ts';
import type { Broker, PartitionInfo, PublishResult } from '../port.ts';
import { createKafkaBroker } from './kafka-broker.ts';

const soon = { timeoutMs: 5000 } as const;
/** Shorter than a restart, so that some batches get no answer in time. */
const impatient = { timeoutMs: 1000 } as const;

type Published = Readonly<{ value: string; result: PublishResult }>;

describe('When Kafka goes away and comes back', { skip: await whyNoKafka() }, () => {
  let dataDir: string;
  let kafka: RunningKafka;
  let broker: Broker;
  const open = (): Broker =>
    createKafkaBroker({ brokers: [kafka.brokers], securityProtocol: 'PLAINTEXT', clientId: 'redrive-test' });
  before(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'redrive-kafka-'));
    kafka = await startKafka({ dataDir });
    broker = open();
  });
  after(async () => {
    await broker.close();
    await kafka.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  const publishUntil = async (
    topic: string,
    isOver: () => boolean,
    published: Published[],
  ): Promise<void> => {
    while (!isOver()) {
      const values = Array.from({ length: 200 }, (_, at) => String(published.length + at));
      const results = await broker.publish(
        values.map((value) => record(topic, { key: Buffer.from(value), value: Buffer.from(value) })),
        impatient,
      );
      for (const [at, result] of results.entries()) published.push({ value: values[at] ?? '', result });
      if (results.some(({ result }) => result !== 'acked')) await sleep(50);
    }
  };

  /** Reads as the ingest does: positions in hand, listed again after trouble, until the given count is reached. */
  const readUntil = async (from: readonly PartitionInfo[], isOver: (read: number) => boolean) => {
    const values: string[] = [];
    let positions = from.map((info) => positionAt(info, 0n));
    let troubles = 0;
    while (!isOver(values.length)) {
      const results = await broker.fetch(positions, limits).catch(async () => {
        troubles++;
        await sleep(50);
        return [];
      });
      for (const result of results) {
        if ('error' in result) continue;
        values.push(...result.records.map(({ value }) => String(value)));
        positions = positions.map((position) =>
          position.partition === result.partition ? { ...position, offset: result.nextOffset } : position,
        );
      }
    }
    return { values, troubles };
  };

  it('tells a reader that retention has overtaken where the log begins now', async () => {
    const topic = newTopic();
    await broker.createTopic(topic, 1);
    await broker.publish(
      Array.from({ length: 10 }, () => record(topic)),
      soon,
    );
    const admin = new Admin({ clientId: 'redrive-test', bootstrapBrokers: [kafka.brokers] });
    await admin.deleteRecords({ topics: [{ name: topic, partitions: [{ partition: 0, offset: 6n }] }] });
    await admin.close();
    const [info] = await partitionsOf(broker, topic);
    assert.ok(info);
    assert.deepEqual([info.start, info.end], [6n, 10n]);
    const { error } = failureOf((await broker.fetch([positionAt(info, 2n)], limits))[0]);
    assert.deepEqual([error.kind, error.start, error.end], ['out_of_range', 6n, 10n]);
    const batch = batchOf((await broker.fetch([positionAt(info, 6n)], limits))[0]);
    assert.deepEqual([batch.records.length, batch.start], [4, 6n]);
  });

  it('reads the other partitions when the bytes of one are broken', async () => {
    const [broken, sound] = [newTopic(), newTopic()];
    for (const topic of [broken, sound]) await broker.createTopic(topic, 1);
    const producer = new Producer({
      clientId: 'redrive-test',
      bootstrapBrokers: [kafka.brokers],
      compression: 'gzip',
    });
    await producer.send({ messages: [{ topic: broken, partition: 0, value: Buffer.alloc(1000, 'x') }] });
    await producer.close();
    await broker.publish([record(sound)], soon);
    const log = await openFile(join(dataDir, 'data', `${broken}-0`, '00000000000000000000.log'), 'r+');
    const batchHeaderBytes = 61;
    await log.write(Buffer.alloc(10, 0xff), 0, 10, batchHeaderBytes);
    await log.close();
    const infos = [...(await partitionsOf(broker, broken)), ...(await partitionsOf(broker, sound))];
    const results = await broker.fetch(
      infos.map((info) => positionAt(info, 0n)),
      limits,
    );
    const { error } = failureOf(results[0]);
    assert.deepEqual([error.kind, error.code], ['unavailable', 'UNREADABLE_RECORDS']);
    assert.equal(batchOf(results[1]).records.length, 1);
  });

  it('loses nothing that was acked and reads everything once, over a kill in mid-batch', async () => {
    const topic = newTopic();
    await broker.createTopic(topic, 3);
    const infos = await partitionsOf(broker, topic);
    let isWritten = false;
    const published: Published[] = [];
    const count = (result: string): number => published.filter((one) => one.result.result === result).length;
    const untilAcked = async (records: number): Promise<void> => {
      while (count('acked') < records) await sleep(20);
    };
    const publishing = publishUntil(topic, () => isWritten, published);
    let expected = Number.POSITIVE_INFINITY;
    const reading = readUntil(infos, (read) => read >= expected);
    await untilAcked(5000);
    await kafka.kill();
    await kafka.restart();
    await untilAcked(count('acked') + 5000);
    isWritten = true;
    await publishing;
    const log = (await readAll(broker, topic)).map(({ value }) => String(value));
    expected = log.length;
    const { values: read, troubles } = await reading;

    assert.ok(count('unknown') > 0 && count('failed') > 0 && troubles > 0, 'the kill was felt');
    const times = Map.groupBy(log, (value) => value);
    for (const { value, result } of published) {
      const written = times.get(value)?.length ?? 0;
      if (result.result === 'acked') assert.equal(written, 1, `acked ${value}`);
      else if (result.result === 'unknown') assert.ok(written <= 1, `unknown ${value}`);
      else assert.equal(written, 0, `${result.result} ${value}`);
    }
    assert.deepEqual(read.toSorted(), log.toSorted());
  });

  it('answers "unknown" in time when the broker hangs, and goes on when it wakes', async () => {
    const topic = newTopic();
    await broker.createTopic(topic, 1);
    await broker.publish([record(topic)], soon);
    await kafka.pause();
    const began = performance.now();
    const [unknown] = await broker.publish([record(topic, { value: Buffer.from('late') })], {
      timeoutMs: 500,
    });
    assert.equal(unknown?.result, 'unknown');
    const signal = AbortSignal.timeout(200);
    await assert.rejects(broker.clusterId(signal), { name: 'TimeoutError' });
    const another = open();
    const [failed] = await another.publish([record(topic)], { timeoutMs: 300 });
    assert.ok(failed?.result === 'failed' && failed.retriable);
    await another.close();
    assert.ok(performance.now() - began < 3000);
    kafka.resume();
    const [acked] = await broker.publish([record(topic, { value: Buffer.from('next') })], soon);
    assert.equal(acked?.result, 'acked');
  });

  it('closes in time although the broker hangs', async () => {
    const another = open();
    const topic = newTopic();
    await another.createTopic(topic, 1);
    const [info] = await partitionsOf(another, topic);
    assert.ok(info);
    await another.publish([record(topic)], soon);
    await kafka.pause();
    const fetching = assert.rejects(another.fetch([positionAt(info, 1n)], limits));
    const publishing = another.publish([record(topic)], soon);
    const began = performance.now();
    await another.close();
    assert.ok(performance.now() - began < 3000);
    await fetching;
    assert.equal((await publishing)[0]?.result, 'unknown');
    kafka.resume();
  });
});
