import type { OutgoingRecord, PublishOptions, PublishResult } from '../port.ts';
import type { Cluster, TopicView } from './cluster.ts';
import { deadlineIn } from './deadline.ts';
import { faultBeforeSend, isRetriable, protocolMessage } from './kafka-errors.ts';
import { createPartitionSender, type PartitionSender } from './partition-sender.ts';
import { partitionOfKey } from '../partitioner.ts';
import { createProducerSessions } from './producer-sessions.ts';
import { notSent } from './send-chunk.ts';
import { sendShare, type Share } from './send-share.ts';
import { createSemaphore, type Semaphore } from './semaphore.ts';

export type Publisher = (
  records: readonly OutgoingRecord[],
  options: PublishOptions,
) => Promise<readonly PublishResult[]>;

type State = Readonly<{
  cluster: Cluster;
  /** Limits concurrent sends per node; a node that hangs does not block the others. */
  semaphoreOf(node: number): Semaphore;
  senderOf(topicId: string, partition: number): PartitionSender;
  /** Counts the records of a topic without a key, for round robin. */
  nextIndex(topic: string): number;
}>;

const sendsAtOncePerNode = 16;

export function createPublisher(cluster: Cluster): Publisher {
  const senders = new Map<string, PartitionSender>();
  const keyless = new Map<string, number>();
  const semaphores = new Map<number, Semaphore>();
  const sessions = createProducerSessions(cluster);
  const state: State = {
    cluster,
    semaphoreOf: (node) => {
      const semaphore = semaphores.get(node) ?? createSemaphore(sendsAtOncePerNode);
      semaphores.set(node, semaphore);
      return semaphore;
    },
    senderOf: (topicId, partition) => {
      const key = `${topicId}:${partition}`;
      const sender = senders.get(key) ?? createPartitionSender(cluster, sessions);
      senders.set(key, sender);
      return sender;
    },
    nextIndex: (topic) => {
      const count = keyless.get(topic) ?? 0;
      keyless.set(topic, count + 1);
      return count;
    },
  };
  return (records, options) => publish(state, records, options);
}

async function publish(
  state: State,
  records: readonly OutgoingRecord[],
  { timeoutMs, signal }: PublishOptions,
): Promise<readonly PublishResult[]> {
  const deadline = deadlineIn(timeoutMs, signal);
  const results: PublishResult[] = Array.from({ length: records.length });
  const names = new Set(records.map(({ topic }) => topic));
  try {
    const topics = await state.cluster.topics([...names], deadline);
    const shares = divide(state, { records, topics, results });
    await Promise.all(
      shares.map((share) => {
        const { topic, partition } = share;
        const sender = state.senderOf(topic.topicId, partition);
        const semaphore = state.semaphoreOf(topic.leaders[partition] ?? -1);
        return sendShare({ sender, semaphore }, share, results, deadline);
      }),
    );
  } catch (error) {
    const failure = notSent(error, signal);
    for (const index of records.keys()) results[index] ??= failure;
  }
  return results;
}

/** Assigns the records to their partitions. Those whose topic is not writable get their result at once. */
function divide(
  state: State,
  from: Readonly<{
    records: readonly OutgoingRecord[];
    topics: ReadonlyMap<string, TopicView>;
    results: PublishResult[];
  }>,
): readonly Share[] {
  const shares = new Map<string, Map<number, Share>>();
  for (const [index, record] of from.records.entries()) {
    const topic = from.topics.get(record.topic);
    const code = refusal(topic);
    if (!topic || code !== undefined) {
      from.results[index] = refused(code ?? unknownTopic);
      continue;
    }
    const partition = partitionFor(state, topic, record.key);
    let ofTopic = shares.get(record.topic);
    if (!ofTopic) shares.set(record.topic, (ofTopic = new Map()));
    const share = ofTopic.get(partition);
    if (share) share.records.push({ record, index });
    else ofTopic.set(partition, { topic, partition, records: [{ record, index }] });
  }
  return [...shares.values()].flatMap((ofTopic) => [...ofTopic.values()]);
}

const unknownTopic = 'UNKNOWN_TOPIC_OR_PARTITION';

function refusal(topic: TopicView | undefined): string | undefined {
  if (!topic) return unknownTopic;
  if (topic.code !== undefined) return topic.code;
  return topic.leaders.length === 0 ? unknownTopic : undefined;
}

const refused = (code: string): PublishResult => ({
  result: 'failed',
  fault: faultBeforeSend(code),
  retriable: code !== unknownTopic && isRetriable(code),
  code,
  message: protocolMessage(code),
});

/** Without a key: round robin over the partitions that have a leader. With a key: as the Java client does. */
function partitionFor(state: State, { topic, leaders }: TopicView, key: Buffer | null): number {
  if (key) return partitionOfKey(key, leaders.length);
  for (let tried = 0; tried < leaders.length; tried++) {
    const partition = state.nextIndex(topic) % leaders.length;
    if ((leaders[partition] ?? -1) >= 0) return partition;
  }
  return 0;
}
