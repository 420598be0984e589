import type { PartitionInfo, PartitionListing, PartitionRef, PartitionTrouble } from '../port.ts';
import type { Cluster, TopicView } from './cluster.ts';
import type { Deadline } from './deadline.ts';
import { protocolMessage, toAppError } from './kafka-errors.ts';
import { earliest, latest, listOffsets, partitionKey, type ListedOffset } from './list-offsets.ts';

type Led = PartitionRef & Readonly<{ node: number }>;

/** Every partition of the topics that match, with its ends; what has no leader, no answer or no right is a trouble. */
export async function listPartitions(
  cluster: Cluster,
  matches: (topic: string) => boolean,
  deadline: Deadline,
): Promise<PartitionListing> {
  const { clusterId, topics } = await cluster.describe('all', deadline);
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
    const [starts, ends] = await Promise.all([
      listOffsets(cluster, { node, partitions, timestamp: earliest }, deadline),
      listOffsets(cluster, { node, partitions, timestamp: latest }, deadline),
    ]);
    return partitions.flatMap((partition) => {
      const start = starts.get(partitionKey(partition)) ?? noAnswer;
      const end = ends.get(partitionKey(partition)) ?? noAnswer;
      if ('offset' in start && 'offset' in end)
        return [{ ...partition, start: start.offset, end: end.offset }];
      const code = 'code' in start ? start.code : 'code' in end ? end.code : noAnswer.code;
      troubles.push(trouble(partition, code));
      return [];
    });
  } catch (error) {
    deadline.signal?.throwIfAborted();
    const { code, message } = toAppError(error);
    for (const { topic, partition } of partitions) troubles.push({ topic, partition, code, message });
    return [];
  }
}

const noAnswer: Extract<ListedOffset, { code: string }> = { code: 'UNKNOWN_SERVER_ERROR' };

function trouble(where: Readonly<{ topic: string; partition?: number }>, code: string): PartitionTrouble {
  const { topic, partition } = where;
  return { topic, ...(partition === undefined ? {} : { partition }), code, message: protocolMessage(code) };
}
