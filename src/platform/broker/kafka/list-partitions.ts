import type { PartitionInfo, PartitionListing, PartitionRef, PartitionTrouble } from '../port.ts';
import type { Cluster, TopicView } from './cluster.ts';
import type { Deadline } from './deadline.ts';
import { fetchErrorKind, protocolMessage, toAppError } from './kafka-errors.ts';
import {
  earliest,
  highWatermark,
  lastStable,
  listOffsets,
  partitionKey,
  type ListedOffset,
} from './list-offsets.ts';

type Led = PartitionRef & Readonly<{ node: number }>;

/** Every partition of the matching topics, with its log ends. A missing leader, response or right is an error. */
export async function listPartitions(
  cluster: Cluster,
  { matches, expected }: Readonly<{ matches: (topic: string) => boolean; expected: readonly string[] }>,
  deadline: Deadline,
): Promise<PartitionListing> {
  const { clusterId, topics: visible } = await cluster.describe('all', deadline);
  const topics = new Map([...visible, ...(await deniedTopics(cluster, visible, expected, deadline))]);
  const troubles: PartitionTrouble[] = [];
  const led: Led[] = [];
  for (const view of topics.values()) {
    if (view.isInternal || !matches(view.topic)) continue;
    if (view.code !== undefined) troubles.push(trouble({ topic: view.topic }, view.code));
    else led.push(...partitionsOf(view, troubles));
  }
  const byNode = Map.groupBy(led, ({ node }) => node);
  const listed = await Promise.all(
    [...byNode].map(([node, partitions]) => endsOf(cluster, { node, partitions, troubles }, deadline)),
  );
  return { clusterId, partitions: listed.flat(), troubles };
}

/** Expected topics that are not listed and not known to be absent: the user may not describe them. */
async function deniedTopics(
  cluster: Cluster,
  visible: ReadonlyMap<string, TopicView>,
  expected: readonly string[],
  deadline: Deadline,
): Promise<readonly (readonly [string, TopicView])[]> {
  const missing = expected.filter((topic) => !visible.has(topic));
  if (missing.length === 0) return [];
  const { topics } = await cluster.describe(missing, deadline);
  return [...topics].filter(([, { code }]) => code !== undefined && fetchErrorKind(code) === 'denied');
}

function partitionsOf({ topic, topicId, leaders }: TopicView, troubles: PartitionTrouble[]): readonly Led[] {
  const led: Led[] = [];
  for (const [partition, node] of leaders.entries()) {
    if (node >= 0) led.push({ topic, topicId, partition, node });
    else troubles.push(trouble({ topic, partition }, 'LEADER_NOT_AVAILABLE'));
  }
  return led;
}

async function endsOf(
  cluster: Cluster,
  of: Readonly<{ node: number; partitions: readonly Led[]; troubles: PartitionTrouble[] }>,
  deadline: Deadline,
): Promise<readonly PartitionInfo[]> {
  const { node, partitions, troubles } = of;
  try {
    // The stable end first: a high watermark read later is never below it.
    const [starts, stableEnds] = await Promise.all([
      listOffsets(cluster, { node, partitions, at: earliest }, deadline),
      listOffsets(cluster, { node, partitions, at: lastStable }, deadline),
    ]);
    const ends = await listOffsets(cluster, { node, partitions, at: highWatermark }, deadline);
    return partitions.flatMap((partition) => {
      const key = partitionKey(partition);
      const [start, stableEnd, end] = [starts, stableEnds, ends].map((listed) => listed.get(key) ?? noAnswer);
      if (start && stableEnd && end && 'offset' in start && 'offset' in stableEnd && 'offset' in end)
        return [{ ...partition, start: start.offset, end: end.offset, stableEnd: stableEnd.offset }];
      const refusal = [start, stableEnd, end].find((listed) => listed && 'code' in listed);
      troubles.push(trouble(partition, refusal && 'code' in refusal ? refusal.code : noAnswer.code));
      return [];
    });
  } catch (error) {
    deadline.signal?.throwIfAborted();
    const { code, message } = toAppError(error);
    for (const { topic, partition } of partitions)
      troubles.push({ topic, partition, code, message, isDenied: false });
    return [];
  }
}

const noAnswer: Extract<ListedOffset, { code: string }> = { code: 'UNKNOWN_SERVER_ERROR' };

function trouble(where: Readonly<{ topic: string; partition?: number }>, code: string): PartitionTrouble {
  const { topic, partition } = where;
  return {
    topic,
    ...(partition === undefined ? {} : { partition }),
    code,
    message: protocolMessage(code),
    isDenied: fetchErrorKind(code) === 'denied',
  };
}
