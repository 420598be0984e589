import { randomUUID } from 'node:crypto';
import { systemClock, type Clock } from '../../../kernel/clock.ts';
import { AppError } from '../../../kernel/errors.ts';
import { partitionOfKey } from '../partitioner.ts';
import {
  mirrorMark,
  type Broker,
  type CommittedOffset,
  type FetchFailure,
  type FetchLimits,
  type FetchResult,
  type OutgoingRecord,
  type PartitionRef,
  type Position,
  type PublishResult,
} from '../port.ts';
import { recordBytes } from '../record-bytes.ts';
import { createLocalLog, type LocalLog, type LogLimits } from './local-log.ts';
import { createWakeUp, type WakeUp } from './wake-up.ts';

export type LocalBrokerOptions = Readonly<{
  clock?: Clock;
  /** What a partition keeps at most; the oldest goes first, as with a topic's retention. */
  retention?: LogLimits;
}>;

type LocalTopic = Readonly<{
  topic: string;
  topicId: string;
  logs: readonly LocalLog[];
  turn: { next: number };
}>;

type State = Readonly<{
  clusterId: string;
  clock: Clock;
  retention: LogLimits;
  topics: Map<string, LocalTopic>;
  committed: Map<string, Map<string, CommittedOffset>>;
  published: WakeUp;
}>;

const defaultRetention: LogLimits = { records: 10_000, bytes: 64 * 1024 * 1024 };
/** Kafka's default for a batch, and what a batch takes besides its records. */
const maxBatchBytes = 1_048_588;
const batchOverheadBytes = 61;
const onlyNode = 1;

/**
 * A broker in this process and in memory, for demos and tests: no other process sees it, and it forgets all when
 * it ends. Its cluster id and topic ids are new at each start, so nobody takes its positions for their own.
 */
export function createLocalBroker(options: LocalBrokerOptions = {}): Broker {
  const state: State = {
    clusterId: `local-${randomUUID()}`,
    clock: options.clock ?? systemClock,
    retention: options.retention ?? defaultRetention,
    topics: new Map(),
    committed: new Map(),
    published: createWakeUp(),
  };
  const closing = new AbortController();
  const check = (signal?: AbortSignal): void => {
    signal?.throwIfAborted();
    if (closing.signal.aborted)
      throw new AppError('SYS_BROKER_CLOSED', 'unavailable', 'the broker connection was closed');
  };

  return {
    clusterId: async (signal) => {
      check(signal);
      return state.clusterId;
    },
    partitions: async (matches, signal) => {
      check(signal);
      const topics = [...state.topics.values()].filter(({ topic }) => matches(topic));
      return { clusterId: state.clusterId, partitions: topics.flatMap(describe), troubles: [] };
    },
    fetch: async (positions, limits, signal) => {
      check(signal);
      const end = signal ? AbortSignal.any([signal, closing.signal]) : closing.signal;
      const results = await fetchOrWait(state, positions, limits, end);
      check(signal);
      return results;
    },
    offsetAt: async (partition, timestampMs, signal) => {
      check(signal);
      const log = logOf(state, partition);
      if (!log)
        throw new AppError('SYS_BROKER_OFFSET_UNKNOWN', 'unavailable', `no such topic: ${partition.topic}`);
      return log.offsetAt(timestampMs);
    },
    committed: async (group, partitions, signal) => {
      check(signal);
      const offsets = state.committed.get(group);
      return partitions.flatMap((ref) => {
        const found = offsets?.get(groupKey(ref));
        return found ? [{ ...found, topicId: ref.topicId }] : [];
      });
    },
    mirror: async (group, positions, signal) => {
      check(signal);
      const offsets = state.committed.get(group) ?? new Map<string, CommittedOffset>();
      state.committed.set(group, offsets);
      for (const position of positions) {
        const { topic, topicId, partition } = position;
        if (state.topics.get(topic)?.topicId === topicId)
          offsets.set(groupKey({ topic, partition }), { ...position, metadata: mirrorMark(topicId) });
      }
    },
    publish: async (records, { signal }) => {
      if (closing.signal.aborted)
        return records.map(() => refused('CLOSED', true, 'the broker connection was closed'));
      if (signal?.aborted) return records.map(() => refused('ABORTED', true, 'the publish was aborted'));
      const results = publish(state, records);
      state.published.wake();
      return results;
    },
    createTopic: async (topic, partitions) => {
      check();
      if (state.topics.has(topic)) return;
      const logs = Array.from({ length: partitions }, () => createLocalLog(state.retention));
      state.topics.set(topic, { topic, topicId: randomUUID(), logs, turn: { next: 0 } });
    },
    deleteTopic: async (topic) => {
      check();
      state.topics.delete(topic);
      for (const offsets of state.committed.values())
        for (const [key, offset] of offsets) if (offset.topic === topic) offsets.delete(key);
      state.published.wake();
    },
    close: async () => {
      closing.abort();
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
    node: onlyNode,
  }));

function logOf(state: State, { topic, topicId, partition }: PartitionRef): LocalLog | undefined {
  const found = state.topics.get(topic);
  return found?.topicId === topicId ? found.logs[partition] : undefined;
}

/** Answers at once when there is a record or a failure, else when something was published or the wait is over. */
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
    return { topic, topicId, partition, records, nextOffset, notRecords: 0n, start, end };
  });
}

const failure = ({ topic, topicId, partition }: Position, error: FetchFailure['error']): FetchFailure => ({
  topic,
  topicId,
  partition,
  error,
});

function publish(state: State, records: readonly OutgoingRecord[]): readonly PublishResult[] {
  const timestamp = BigInt(state.clock.now().getTime());
  const failedAt = new Map<LocalLog, number>();
  return records.map((record, index) => {
    const topic = state.topics.get(record.topic);
    if (!topic) return refused('UNKNOWN_TOPIC_OR_PARTITION', false, `no such topic: ${record.topic}`);
    const count = topic.logs.length;
    const partition = record.key ? partitionOfKey(record.key, count) : topic.turn.next++ % count;
    const log = topic.logs[partition];
    if (!log) return refused('UNKNOWN_TOPIC_OR_PARTITION', false, `no partition ${partition}`);
    const behind = failedAt.get(log);
    if (behind !== undefined) return { result: 'skipped', behind };
    if (recordBytes(record) + batchOverheadBytes > maxBatchBytes) {
      failedAt.set(log, index);
      return refused('MESSAGE_TOO_LARGE', false, `the record has about ${recordBytes(record)} bytes`);
    }
    return { result: 'acked', partition, offset: log.append(record, timestamp) };
  });
}

const refused = (code: string, retriable: boolean, message: string): PublishResult => ({
  result: 'failed',
  retriable,
  code,
  message,
});
