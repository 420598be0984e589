import type {
  Broker,
  BrokerRecord,
  FetchResult,
  OutgoingRecord,
  PartitionRef,
  Position,
} from '../../src/platform/broker/port.ts';
import type { Failed } from './dead-letter.ts';
import { publish } from './publish.ts';

export type Consumer = Readonly<{
  topic: string;
  /** Its consumer group. */
  group: string;
  handle(record: BrokerRecord): Promise<void>;
  /** Makes the dead letter of a record whose `handle` has thrown. */
  deadLetter(failed: Failed): OutgoingRecord;
}>;

const limits = { maxWaitMs: 1000, maxBytes: 1024 * 1024, maxBytesPerPartition: 256 * 1024 } as const;

/**
 * Reads a topic from its start until the signal. A record that fails does not stop the ones behind it: it becomes
 * a dead letter, and only when the broker has that does the consumer go on, so no record gets lost in between.
 * Only then it commits its positions for its group: a canary waits for that, because before it nobody can say that a
 * message was processed.
 */
export async function consume(broker: Broker, consumer: Consumer, signal: AbortSignal): Promise<void> {
  const { partitions } = await broker.partitions((topic) => topic === consumer.topic);
  let positions = partitions.map((partition): Position => positionIn(partition, partition.start));
  while (!signal.aborted) {
    const batches = await fetchUntil(broker, positions, signal);
    for (const batch of batches) {
      const { topic, partition } = batch;
      const records = 'error' in batch ? [] : batch.records;
      for (const record of records) await handleOrBury(broker, consumer, { topic, partition, record });
      positions = positions.map((position) =>
        position.partition === partition ? positionIn(batch, nextOffsetAfter(batch)) : position,
      );
    }
    if (batches.some((batch) => 'records' in batch && batch.records.length > 0))
      await broker.mirror(consumer.group, positions);
  }
}

/** Records that the topic's retention has deleted are skipped, as with `auto.offset.reset=earliest` in Kafka. */
function nextOffsetAfter(result: FetchResult): bigint {
  if (!('error' in result)) return result.nextOffset;
  const { kind, start, message } = result.error;
  if (kind === 'out_of_range' && start !== undefined) return start;
  throw new Error(`cannot read ${result.topic}: ${message}`);
}

function positionIn({ topic, topicId, partition }: PartitionRef, offset: bigint): Position {
  return { topic, topicId, partition, offset };
}

/** An abort ends the wait for records and is not an error. */
async function fetchUntil(
  broker: Broker,
  positions: readonly Position[],
  signal: AbortSignal,
): ReturnType<Broker['fetch']> {
  try {
    return await broker.fetch(positions, limits, signal);
  } catch (error) {
    if (signal.aborted) return [];
    throw error;
  }
}

async function handleOrBury(broker: Broker, consumer: Consumer, read: Omit<Failed, 'error'>): Promise<void> {
  try {
    await consumer.handle(read.record);
  } catch (thrown) {
    const error = thrown instanceof Error ? thrown : new Error(String(thrown));
    await publish(broker, consumer.deadLetter({ ...read, error }));
  }
}
