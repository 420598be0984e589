import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type {
  Broker,
  BrokerRecord,
  FetchedBatch,
  FetchFailure,
  FetchResult,
  Header,
  OutgoingRecord,
  PartitionInfo,
  Position,
} from '../../../src/platform/broker/port.ts';

/** What a broker promises, as a sentence, and the proof on any broker. */
export type Promises = Readonly<Record<string, (broker: Broker) => Promise<void>>>;

export const soon = { timeoutMs: 10_000 } as const;

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
  assert.ok(
    result && !('error' in result),
    `not a batch: ${JSON.stringify(result && 'error' in result && result.error.code)}`,
  );
  return result;
}

export function failureOf(result: FetchResult | undefined): FetchFailure {
  assert.ok(result && 'error' in result, 'not a failure');
  return result;
}

/** All records of the topic, partition by partition, read until the ends that were listed at the beginning. */
export async function readAll(broker: Broker, topic: string): Promise<readonly BrokerRecord[]> {
  return (await readPlaced(broker, topic)).map(({ record }) => record);
}

export type PlacedRecord = Readonly<{ partition: number; record: BrokerRecord }>;

/** The same with their partitions. */
export async function readPlaced(broker: Broker, topic: string): Promise<readonly PlacedRecord[]> {
  const records: PlacedRecord[] = [];
  for (const info of await partitionsOf(broker, topic)) {
    let offset = info.start;
    while (offset < info.stableEnd) {
      const [result] = await broker.fetch([positionAt(info, offset)], limits);
      const batch = batchOf(result);
      records.push(...batch.records.map((record) => ({ partition: info.partition, record })));
      offset = batch.nextOffset;
    }
  }
  return records;
}

export async function topicWith(broker: Broker, partitions: number): Promise<string> {
  const topic = newTopic();
  await broker.createTopic(topic, partitions);
  return topic;
}

export async function onlyPartition(broker: Broker, topic: string): Promise<PartitionInfo> {
  const [info] = await partitionsOf(broker, topic);
  assert.ok(info);
  return info;
}
