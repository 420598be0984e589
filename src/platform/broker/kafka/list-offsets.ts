import { listOffsetsV7, listOffsetsV8, listOffsetsV9 } from '@platformatic/kafka';
import type { PartitionRef } from '../port.ts';
import { offered } from './api-version.ts';
import type { Cluster } from './cluster.ts';
import type { Deadline } from './deadline.ts';
import { protocolCode, responseOf } from './kafka-errors.ts';

export type ListedOffset = Readonly<{ offset: bigint } | { code: string }>;

const readUncommitted = 0;
const readCommitted = 1;

type Instant = Readonly<{ timestamp: bigint; isolation: number }>;

/** Timestamps with special meanings. The latest depends on the isolation level: less for a read-committed reader. */
export const earliest: Instant = { timestamp: -2n, isolation: readCommitted };
export const lastStable: Instant = { timestamp: -1n, isolation: readCommitted };
export const highWatermark: Instant = { timestamp: -1n, isolation: readUncommitted };
export const firstSince = (timestamp: bigint): Instant => ({ timestamp, isolation: readCommitted });

export const partitionKey = ({ topic, partition }: Readonly<{ topic: string; partition: number }>): string =>
  `${topic}:${partition}`;

/** By partition key: the first offset at or after the timestamp (-1 if there is none), or the error. */
export async function listOffsets(
  cluster: Cluster,
  ask: Readonly<{ node: number; partitions: readonly PartitionRef[]; at: Instant }>,
  deadline: Deadline,
): Promise<ReadonlyMap<string, ListedOffset>> {
  const topics = Map.groupBy(ask.partitions, ({ topic }) => topic);
  const request = [...topics].map(([name, partitions]) => ({
    name,
    partitions: partitions.map(({ partition }) => ({
      partitionIndex: partition,
      currentLeaderEpoch: -1,
      timestamp: ask.at.timestamp,
    })),
  }));
  const response = await cluster.askNode(
    { node: ask.node, purpose: 'control' },
    deadline,
    'offsets',
    (link) => {
      const api = offered(link, [listOffsetsV9.api, listOffsetsV8.api, listOffsetsV7.api]);
      return responseOf(api.async(link.connection, -1, ask.at.isolation, request));
    },
  );
  const listed = new Map<string, ListedOffset>();
  for (const { name, partitions } of response.topics)
    for (const { partitionIndex, errorCode, offset } of partitions)
      listed.set(
        partitionKey({ topic: name, partition: partitionIndex }),
        errorCode === 0 ? { offset } : { code: protocolCode(errorCode) },
      );
  return listed;
}
