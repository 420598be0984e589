import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { addPartitionsToTxnV3, Connection, endTxnV3, initProducerIdV4 } from '@platformatic/kafka';
import { runJavaScript } from '../../../../tools/kafka/java-script.ts';
import { kafkaForTests, whyNoKafka, type SharedKafka } from '../../../../tools/kafka/kafka-for-tests.ts';
import {
  batchOf,
  limits,
  newTopic,
  partitionsOf,
  positionAt,
  readAll,
  record,
} from '../../../../tests/support/broker-conformance/fixtures.ts';
import { partitionOfKey } from '../partitioner.ts';
import type { Broker, FetchLimits } from '../port.ts';
import { createKafkaBroker } from './kafka-broker.ts';

const soon = { timeoutMs: 10_000 } as const;

describe('Beside the Java clients', { skip: await whyNoKafka() }, () => {
  let kafka: SharedKafka;
  let broker: Broker;
  before(async () => {
    kafka = await kafkaForTests();
    broker = createKafkaBroker({
      brokers: kafka.brokers.split(','),
      securityProtocol: 'PLAINTEXT',
      clientId: 'redrive-test',
    });
  });
  after(async () => {
    await broker.close();
    await kafka.stop();
  });

  const topicWith = async (partitions: number): Promise<string> => {
    const topic = newTopic();
    await broker.createTopic(topic, partitions);
    return topic;
  };

  /** Offset and value of all that we see, the way the Java consumer prints it, and what the other offsets hold. */
  const readWith = async (topic: string, size: FetchLimits) => {
    const [info] = await partitionsOf(broker, topic);
    assert.ok(info);
    const seen: string[][] = [];
    const skipped = { control: 0n, aborted: 0n, gap: 0n };
    for (let offset = info.start; offset < info.stableEnd;) {
      const batch = batchOf((await broker.fetch([positionAt(info, offset)], size))[0]);
      for (const { offset: at, value } of batch.records)
        seen.push(['0', String(at), value?.toString('base64') ?? '-']);
      for (const { kind, from, to } of batch.skipped) skipped[kind] += to - from;
      offset = batch.nextOffset;
    }
    return { seen, skipped, info };
  };

  it('sees the transactions that the Java read-committed consumer sees', async () => {
    const topic = await topicWith(1);
    const [a, b, open] = [randomUUID(), randomUUID(), randomUUID()];
    const script = (...lines: readonly string[]) =>
      lines.map((line) => line.replaceAll('TOPIC', topic).split(' '));
    const aborted = [`begin ${a}`, `send ${a} TOPIC 0 3 20`, `abort ${a}`];
    await runJavaScript(
      kafka.brokers,
      script('send plain TOPIC 0 2 20', ...aborted, `begin ${a}`, `send ${a} TOPIC 0 2 20`, `commit ${a}`),
    );
    await abortWithoutRecords(kafka.brokers, a, topic);
    const seenByJava = await runJavaScript(
      kafka.brokers,
      script(
        `begin ${a}`,
        `send ${a} TOPIC 0 2 20`,
        `commit ${a}`,
        `begin ${a}`,
        `send ${a} TOPIC 0 1 20`,
        `abort ${a}`,
        `begin ${a}`,
        `send ${a} TOPIC 0 1 20`,
        `abort ${a}`,
        `begin ${a}`,
        `begin ${b}`,
        `send ${a} TOPIC 0 2 20`,
        `send ${b} TOPIC 0 2 20`,
        'send plain TOPIC 0 1 20',
        `send ${a} TOPIC 0 1 20`,
        `abort ${a}`,
        `send ${b} TOPIC 0 1 20`,
        `commit ${b}`,
        `begin ${a}`,
        `send ${a} TOPIC 0 1 20`,
        `commit ${a}`,
        `begin ${b}`,
        `send ${b} TOPIC 0 300 5000`,
        'send plain TOPIC 0 1 20',
        `abort ${b}`,
        'send plain TOPIC 0 1 20',
        // Left open: nobody who reads committed records gets beyond its first one.
        `begin ${open}`,
        `send ${open} TOPIC 0 1 20`,
        'send plain TOPIC 0 3 20',
        'consume TOPIC',
      ),
    );
    for (const maxBytesPerPartition of [1, 50_000, 10_000_000]) {
      const { seen, skipped, info } = await readWith(topic, { ...limits, maxBytesPerPartition });
      assert.deepEqual(seen, seenByJava);
      assert.deepEqual(skipped, { control: 10n, aborted: 3n + 1n + 1n + 3n + 300n, gap: 0n });
      assert.equal(info.stableEnd, BigInt(seen.length) + skipped.control + skipped.aborted);
      assert.equal(info.end, info.stableEnd + 4n);
    }
    assert.equal(seenByJava.length, 2 + 2 + 2 + 1 + 3 + 1 + 2);
  });

  it('reads null, duplicate and binary headers of a Java producer', async () => {
    const topic = await topicWith(1);
    const bytes = randomBytes(300);
    const headers = [
      ['h', bytes],
      ['h', null],
      ['ü', Buffer.alloc(0)],
      ['h', Buffer.from('last')],
    ] as const;
    const words = headers.map(
      ([key, value]) => `${Buffer.from(key).toString('base64')}=>${value?.toString('base64') ?? '-'}`,
    );
    await runJavaScript(kafka.brokers, [
      ['produce', topic, '-', null, null],
      ['produce', topic, '-', bytes, Buffer.alloc(0), ...words],
    ]);
    const [empty, full] = await readAll(broker, topic);
    assert.deepEqual([empty?.key, empty?.value, empty?.headers], [null, null, []]);
    assert.deepEqual([full?.key, full?.value], [bytes, Buffer.alloc(0)]);
    assert.deepEqual(
      full?.headers,
      headers.map(([key, value]) => ({ key: Buffer.from(key), value })),
    );
  });

  it('reads what was compressed with any codec', async () => {
    const topic = await topicWith(1);
    const value = Buffer.from('compress me '.repeat(500));
    const codecs = ['none', 'gzip', 'snappy', 'lz4', 'zstd'];
    await runJavaScript(
      kafka.brokers,
      codecs.flatMap((codec) => [
        ['codec', codec],
        ['produce', topic, '-', Buffer.from(codec), value],
      ]),
    );
    assert.deepEqual(
      (await readAll(broker, topic)).map((read) => [String(read.key), read.value, read.compression]),
      codecs.map((codec) => [codec, value, codec]),
    );
  });

  it('compresses with any codec so that the Java consumer can read it', async () => {
    const topic = await topicWith(1);
    const value = Buffer.alloc(150_000, 'compress me ');
    const codecs = ['none', 'gzip', 'snappy', 'lz4', 'zstd'] as const;
    await broker.publish(
      codecs.map((compression) => ({ topic, key: null, value, headers: [], compression })),
      soon,
    );
    const consumed = await runJavaScript(kafka.brokers, [['consume', topic]]);
    assert.deepEqual(
      consumed,
      codecs.map((_, offset) => ['0', String(offset), value.toString('base64')]),
    );
  });

  it('puts a key where the Java producer puts it', async () => {
    const topic = await topicWith(7);
    const keys = Array.from({ length: 200 }, (_, length) => randomBytes(length % 40));
    const byJava = await runJavaScript(
      kafka.brokers,
      keys.map((key) => ['produce', topic, '-', key, Buffer.from('java')]),
    );
    const byUs = await broker.publish(
      keys.map((key) => record(topic, { key })),
      soon,
    );
    for (const [at, key] of keys.entries()) {
      const result = byUs[at];
      assert.ok(result?.result === 'acked');
      assert.equal(result.partition, Number(byJava[at]?.[0]), `key ${key.toString('hex')}`);
      assert.equal(result.partition, partitionOfKey(key, 7));
    }
  });

  it('takes the offsets that a real group has committed', async () => {
    const topic = await topicWith(1);
    const group = `group-${randomUUID()}`;
    await broker.publish(
      Array.from({ length: 5 }, () => record(topic)),
      soon,
    );
    await runJavaScript(kafka.brokers, [['group', group, topic, 3]]);
    const infos = await partitionsOf(broker, topic);
    const [info] = infos;
    assert.ok(info);
    assert.deepEqual(await broker.committed(group, infos), [{ ...positionAt(info, 3n), metadata: '' }]);
  });

  it('shows its positions and its lag in the consumer-groups tool', async () => {
    const topic = await topicWith(2);
    const group = `group-${randomUUID()}`;
    await broker.publish(
      Array.from({ length: 10 }, () => record(topic)),
      soon,
    );
    const infos = await partitionsOf(broker, topic);
    await broker.mirror(
      group,
      infos.map((info) => positionAt(info, BigInt(info.partition + 1))),
    );
    const describeGroup = ['--bootstrap-server', kafka.brokers, '--describe', '--group', group];
    const tool = 'org.apache.kafka.tools.consumer.group.ConsumerGroupCommand';
    const { stdout } = await kafka.javaTool(tool, describeGroup);
    const rows = stdout
      .split('\n')
      .filter((line) => line.startsWith(group))
      .map((line) => line.split(/\s+/).slice(1, 6))
      .toSorted(([, a], [, b]) => Number(a) - Number(b));
    assert.deepEqual(rows, [
      [topic, '0', '1', '5', '4'],
      [topic, '1', '2', '5', '3'],
    ]);
  });
});

/** A transaction that takes the partition in and aborts before any record: it leaves nothing but its marker. */
async function abortWithoutRecords(brokers: string, transactionalId: string, topic: string): Promise<void> {
  const connection = new Connection('redrive-test');
  const [host = '', port] = brokers.split(':');
  await connection.connect(host, Number(port));
  const { producerId, producerEpoch } = await initProducerIdV4.api.async(
    connection,
    transactionalId,
    10_000,
    -1n,
    -1,
  );
  const topics = [{ name: topic, partitions: [0] }];
  await addPartitionsToTxnV3.api.async(connection, [
    { transactionalId, producerId, producerEpoch, verifyOnly: false, topics },
  ]);
  await endTxnV3.api.async(connection, transactionalId, producerId, producerEpoch, false);
  await connection.close();
}
