import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { inspect } from 'node:util';
import { createKafkaBroker } from '../../src/platform/broker/kafka/kafka-broker.ts';
import type { Broker, BrokerRecord, Header, OutgoingRecord } from '../../src/platform/broker/port.ts';

/** Options for tests that need the real Kafka: skipped, with the reason, where the test run has none. */
export const needsKafka = process.env['KAFKA_BROKERS'] ? {} : { skip: 'no Kafka: KAFKA_BROKERS is not set' };

/** A corner of the real Kafka for one test file: its topics begin with a prefix that nobody else uses. */
export type TestKafka = Readonly<{
  broker: Broker;
  /** Makes a system read only the dead-letter topics of this corner. */
  env: Readonly<Record<string, string>>;
  /** A topic's full name; it is not made by naming it. */
  name(suffix: string): string;
  createTopic(suffix: string, partitions?: number): Promise<string>;
  /** Publishes one record; returns where it lies. */
  publish(record: TestRecord): Promise<Readonly<{ partition: number; offset: bigint }>>;
  /** Every record that the topic has now, by partition and offset. */
  read(topic: string): Promise<readonly BrokerRecord[]>;
  close(): Promise<void>;
}>;

export type TestRecord = Readonly<{
  topic: string;
  key?: Buffer | string | null;
  value?: Buffer | string | null;
  headers?: readonly (readonly [string | Buffer, string | Buffer | null])[];
}>;

export function openTestKafka(): TestKafka {
  const prefix = `t${randomBytes(5).toString('hex')}`;
  const brokers = (process.env['KAFKA_BROKERS'] ?? '').split(',');
  const broker = createKafkaBroker({ brokers, clientId: 'redrive-test', securityProtocol: 'PLAINTEXT' });
  const topics = new Set<string>();
  const name = (suffix: string): string => `${prefix}.${suffix}`;
  return {
    broker,
    env: {
      KAFKA_DLQ_TOPIC_PATTERN: `${prefix}.*.dlq.v1,${prefix}.*.dlq`,
      KAFKA_CONSUMER_GROUP: `${prefix}.readers`,
    },
    name,
    async createTopic(suffix, partitions = 1) {
      const topic = name(suffix);
      await broker.createTopic(topic, partitions);
      topics.add(topic);
      return topic;
    },
    async publish(record) {
      const [result] = await broker.publish([outgoing(record)], { timeoutMs: 10_000 });
      assert.equal(result?.result, 'acked', inspect(result));
      return result;
    },
    read: (topic) => readTopic(broker, topic),
    async close() {
      for (const topic of topics) await broker.deleteTopic(topic);
      await broker.close();
    },
  };
}

function outgoing({ topic, key = null, value = null, headers = [] }: TestRecord): OutgoingRecord {
  return {
    topic,
    key: bytes(key),
    value: bytes(value),
    headers: headers.map(([name, content]) => ({ key: Buffer.from(name), value: bytes(content) })),
  };
}

function bytes(content: Buffer | string | null): Buffer | null {
  return content === null ? null : Buffer.from(content);
}

async function readTopic(broker: Broker, topic: string): Promise<readonly BrokerRecord[]> {
  const { partitions } = await broker.partitions((name) => name === topic);
  const records: BrokerRecord[] = [];
  for (const partition of partitions) {
    for (let offset = partition.start; offset < partition.stableEnd;) {
      const limits = { maxWaitMs: 100, maxBytes: 8 << 20, maxBytesPerPartition: 8 << 20 };
      const [result] = await broker.fetch([{ ...partition, offset }], limits);
      assert.ok(result !== undefined && 'records' in result, inspect(result));
      records.push(...result.records);
      offset = result.nextOffset;
    }
  }
  return records;
}

/** Headers in a form that assertions print well: names and values as Latin-1, which keeps every byte. */
export function headerTexts(headers: readonly Header[]): readonly (readonly [string, string | null])[] {
  return headers.map(({ key, value }) => [key.toString('latin1'), value?.toString('latin1') ?? null]);
}
