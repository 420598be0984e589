import { randomUUID } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { systemClock, type Clock } from '../../../kernel/clock.ts';
import { AppError } from '../../../kernel/errors.ts';
import { partitionOfKey } from '../partitioner.ts';
import {
  mirrorMark,
  type Broker,
  type CommittedOffset,
  type Compression,
  type FetchFailure,
  type FetchLimits,
  type FetchResult,
  type OutgoingRecord,
  type PartitionRef,
  type Position,
  type PublishFault,
  type PublishResult,
  type TopicTrouble,
} from '../port.ts';
import { recordBytes } from '../record-bytes.ts';
import { createLocalLog, type LocalLog } from './local-log.ts';
import { createWakeUp, type WakeUp } from './wake-up.ts';

export type LocalBrokerOptions = Readonly<{
  clock?: Clock;
  /** The memory that the records of one topic may take, divided evenly among its partitions. */
  bytesPerTopic?: number;
}>;

type LocalTopic = Readonly<{
  topic: string;
  topicId: string;
  logs: readonly LocalLog[];
  /** Distributes records without a key. */
  roundRobin: { next: number };
}>;

type State = Readonly<{
  clusterId: string;
  clock: Clock;
  bytesPerTopic: number;
  topics: Map<string, LocalTopic>;
  committed: Map<string, Map<string, CommittedOffset>>;
  published: WakeUp;
  closing: AbortController;
}>;

const defaultBytesPerTopic = 8 * 1024 * 1024;
/** Kafka's default limit for a batch, and the size of a batch without its records. */
const maxBatchBytes = 1_048_588;
const batchOverheadBytes = 61;
const onlyNode = 1;

/**
 * A broker in this process and in memory, for demos and tests: no other process sees it, and its topics end with the
 * process. Its cluster id and topic ids are new at each start, so that its positions are never mistaken for those of
 * another broker. A topic keeps its newest records up to a number of bytes and deletes older ones, read or not.
 */
export function createLocalBroker(options: LocalBrokerOptions = {}): Broker {
  const state: State = {
    clusterId: `local-${randomUUID()}`,
    clock: options.clock ?? systemClock,
    bytesPerTopic: options.bytesPerTopic ?? defaultBytesPerTopic,
    topics: new Map(),
    committed: new Map(),
    published: createWakeUp(),
    closing: new AbortController(),
  };
  return {
    ...readerOf(state),
    ...consumerGroupsOf(state),
    ...publisherOf(state),
    ...topicsOf(state),
    close: async () => state.closing.abort(),
  };
}

/** Throws if the call was aborted or the broker was closed. */
function check({ closing }: State, signal?: AbortSignal): void {
  signal?.throwIfAborted();
  if (closing.signal.aborted)
    throw new AppError('SYS_BROKER_CLOSED', 'unavailable', 'the broker connection was closed');
}

function readerOf(state: State): Pick<Broker, 'clusterId' | 'partitions' | 'fetch' | 'offsetAt'> {
  const { clusterId, closing } = state;
  return {
    clusterId: async (signal) => {
      check(state, signal);
      return clusterId;
    },
    partitions: async (matches, signal) => {
      check(state, signal);
      const topics = [...state.topics.values()].filter(({ topic }) => matches(topic));
      return { clusterId, partitions: topics.flatMap(describe), troubles: [] };
    },
    fetch: async (positions, limits, signal) => {
      check(state, signal);
      const end = signal ? AbortSignal.any([signal, closing.signal]) : closing.signal;
      const results = await fetchOrWait(state, positions, limits, end);
      check(state, signal);
      return results;
    },
    offsetAt: async (partition, timestampMs, signal) => {
      check(state, signal);
      const log = logOf(state, partition);
      if (!log)
        throw new AppError('SYS_BROKER_OFFSET_UNKNOWN', 'unavailable', `no such topic: ${partition.topic}`);
      return log.offsetAt(timestampMs);
    },
  };
}

function consumerGroupsOf(state: State): Pick<Broker, 'groups' | 'committed' | 'mirror'> {
  return {
    groups: async (signal) => {
      check(state, signal);
      return [...state.committed.keys()];
    },
    committed: async (group, partitions, signal) => {
      check(state, signal);
      const offsets = state.committed.get(group);
      return partitions.flatMap((ref) => {
        const found = offsets?.get(groupKey(ref));
        return found ? [{ ...found, topicId: ref.topicId }] : [];
      });
    },
    mirror: async (group, positions, signal) => {
      check(state, signal);
      const offsets = state.committed.get(group) ?? new Map<string, CommittedOffset>();
      state.committed.set(group, offsets);
      for (const position of positions) {
        const { topic, topicId, partition } = position;
        if (state.topics.get(topic)?.topicId === topicId)
          offsets.set(groupKey({ topic, partition }), { ...position, metadata: mirrorMark(topicId) });
      }
    },
  };
}

function publisherOf(state: State): Pick<Broker, 'unwritable' | 'publish'> {
  return {
    unwritable: async (topics, signal) => {
      check(state, signal);
      const missing = topics.filter((topic) => !state.topics.has(topic));
      return new Map(missing.map((topic) => [topic, noSuchTopic]));
    },
    publish: async (records, { signal }) => {
      if (state.closing.signal.aborted)
        return records.map(() => refused('CLOSED', 'cluster', 'the broker connection was closed'));
      if (signal?.aborted) return records.map(() => refused('ABORTED', 'cluster', 'the publish was aborted'));
      const results = publish(state, records);
      state.published.wake();
      return results;
    },
  };
}

function topicsOf(state: State): Pick<Broker, 'createTopic' | 'deleteTopic'> {
  return {
    createTopic: async (topic, partitions) => {
      check(state);
      if (state.topics.has(topic)) return;
      const bytesPerPartition = state.bytesPerTopic / partitions;
      const logs = Array.from({ length: partitions }, () => createLocalLog(bytesPerPartition));
      state.topics.set(topic, { topic, topicId: randomUUID(), logs, roundRobin: { next: 0 } });
    },
    deleteTopic: async (topic) => {
      check(state);
      state.topics.delete(topic);
      for (const offsets of state.committed.values())
        for (const [key, offset] of offsets) if (offset.topic === topic) offsets.delete(key);
      state.published.wake();
    },
  };
}

const groupKey = ({ topic, partition }: Readonly<{ topic: string; partition: number }>): string =>
  `${topic}:${partition}`;

const describe = ({ topic, topicId, logs }: LocalTopic) =>
  logs.map((log, partition) => ({
    topic,
    topicId,
    partition,
    start: log.start(),
    end: log.end(),
    stableEnd: log.end(),
    node: onlyNode,
  }));

function logOf(state: State, { topic, topicId, partition }: PartitionRef): LocalLog | undefined {
  const found = state.topics.get(topic);
  return found?.topicId === topicId ? found.logs[partition] : undefined;
}

/** Returns at once if there is a record or a failure, else after a publish or when the wait has ended. */
async function fetchOrWait(
  state: State,
  positions: readonly Position[],
  limits: FetchLimits,
  signal: AbortSignal,
): Promise<readonly FetchResult[]> {
  const until = performance.now() + limits.maxWaitMs;
  for (;;) {
    const results = fetchNow(state, positions, limits);
    const left = until - performance.now();
    if (left <= 0 || results.some((result) => 'error' in result || result.records.length > 0)) return results;
    if ((await state.published.wait(left, signal)) === 'aborted') return results;
  }
}

const noSuchOffset = { code: 'OFFSET_OUT_OF_RANGE', message: 'no such offset' } as const;

function fetchNow(state: State, positions: readonly Position[], limits: FetchLimits): readonly FetchResult[] {
  let bytesLeft = limits.maxBytes;
  return positions.map((position) => {
    const { topic, topicId, partition, offset } = position;
    const log = logOf(state, position);
    if (!log) return failure(position, { kind: 'gone', code: 'UNKNOWN_TOPIC_ID', message: 'no such topic' });
    const [start, end] = [log.start(), log.end()];
    if (offset < start || offset > end)
      return failure(position, { kind: 'out_of_range', ...noSuchOffset, start, end });
    const records = bytesLeft > 0 ? log.read(offset, Math.min(bytesLeft, limits.maxBytesPerPartition)) : [];
    for (const record of records) bytesLeft -= recordBytes(record);
    const nextOffset = offset + BigInt(records.length);
    return { topic, topicId, partition, records, nextOffset, skipped: [], start, end, stableEnd: end };
  });
}

const failure = ({ topic, topicId, partition }: Position, error: FetchFailure['error']): FetchFailure => ({
  topic,
  topicId,
  partition,
  error,
});

const noSuchTopic: TopicTrouble = {
  problem: 'missing',
  code: 'UNKNOWN_TOPIC_OR_PARTITION',
  message: 'no such topic',
};

function publish(state: State, records: readonly OutgoingRecord[]): readonly PublishResult[] {
  const now = BigInt(state.clock.now().getTime());
  const refusedAt = new Map<string, number>();
  return records.map((record, index) => {
    const topic = state.topics.get(record.topic);
    if (!topic) return refused(noSuchTopic.code, 'topic', `no such topic: ${record.topic}`);
    const count = topic.logs.length;
    const partition = record.key ? partitionOfKey(record.key, count) : topic.roundRobin.next++ % count;
    const log = topic.logs[partition];
    if (!log) return refused(noSuchTopic.code, 'topic', `no partition ${partition}`);
    const key = record.key && `${record.topic}:${record.key.toString('latin1')}`;
    const behind = key === null ? undefined : refusedAt.get(key);
    if (behind !== undefined) return { result: 'skipped', behind };
    const compression = codecThatFits(record);
    if (compression === null) {
      if (key !== null) refusedAt.set(key, index);
      return refused('MESSAGE_TOO_LARGE', 'record', `the record has about ${recordBytes(record)} bytes`);
    }
    return { result: 'acked', partition, offset: log.append(record, record.timestamp ?? now, compression) };
  });
}

/** The codec of the stored record, or null if the record is too large. Measures every codec with gzip. */
function codecThatFits(record: OutgoingRecord): Compression | null {
  const { compression: wanted = 'none' } = record;
  const plain = wanted === 'unknown' ? 'none' : wanted;
  if (recordBytes(record) + batchOverheadBytes <= maxBatchBytes) return plain;
  if (wanted === 'none') return null;
  const value = record.value && gzipSync(record.value);
  const fits = recordBytes({ ...record, value }) + batchOverheadBytes <= maxBatchBytes;
  return fits ? (wanted === 'unknown' ? 'gzip' : wanted) : null;
}

const refused = (code: string, fault: PublishFault, message: string): PublishResult => ({
  result: 'failed',
  fault,
  retriable: fault === 'cluster',
  code,
  message,
});
