import type { PartitionRef } from '../domain/record.ts';
import type { PartitionStore, Source } from './ports.ts';

export type DiscoverDeps = Readonly<{
  source: Source;
  partitions: PartitionStore;
  isDeadLetterTopic: (topic: string) => boolean;
  group: string;
  onTrouble: (topic: string, message: string) => void;
}>;

export type Discovered = Readonly<{
  clusterId: string;
  nodeOf: ReadonlyMap<string, number>;
  /** Topics that could not be looked at: what is missing of them may still be there. */
  troubled: ReadonlySet<string>;
}>;

export function partitionKey({ topicId, partition }: PartitionRef): string {
  return `${topicId}/${partition}`;
}

/**
 * Finds the partitions of all dead-letter topics and adds a row for each new one. A partition begins where the
 * consumer group has committed, if it has and we do not know the topic by name: then a running installation is
 * taken over without loss. Otherwise it begins at the earliest record: a topic that was made again is read
 * from its start. When the group cannot be asked, nothing is added; there is no falling back.
 */
export async function discoverPartitions(deps: DiscoverDeps, signal: AbortSignal): Promise<Discovered> {
  const listing = await deps.source.partitions(deps.isDeadLetterTopic, signal);
  for (const trouble of listing.troubles)
    deps.onTrouble(trouble.topic, `${trouble.code}: ${trouble.message}`);

  const known = await deps.partitions.known(listing.clusterId);
  const knownKeys = new Set(known.map(partitionKey));
  const knownTopics = new Set(known.map(({ topic }) => topic));
  const troubled = new Set(listing.troubles.map(({ topic }) => topic));
  // A new topic waits until all of it can be seen: added in part, its rest would look like a topic made again.
  const found = listing.partitions.filter(
    (partition) =>
      !knownKeys.has(partitionKey(partition)) &&
      (knownTopics.has(partition.topic) || !troubled.has(partition.topic)),
  );
  if (found.length > 0) {
    const takenOver = found.filter(({ topic }) => !knownTopics.has(topic));
    const committed = await committedOffsets(deps, takenOver, signal);
    await deps.partitions.add(
      listing.clusterId,
      found.map((partition) => ({
        ...partition,
        firstOffset: committed.get(partitionKey(partition)) ?? partition.start,
      })),
    );
  }
  await deps.partitions.observe(listing.clusterId, listing.partitions, troubled);
  const nodes = listing.partitions.map((partition) => [partitionKey(partition), partition.node] as const);
  return { clusterId: listing.clusterId, nodeOf: new Map(nodes), troubled };
}

/** An offset that we mirrored ourselves says nothing about another reader's progress. */
async function committedOffsets(
  deps: DiscoverDeps,
  partitions: readonly PartitionRef[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, bigint>> {
  if (partitions.length === 0) return new Map();
  const committed = await deps.source.committed(deps.group, partitions, signal);
  const foreign = committed.filter(
    ({ metadata, offset }) => !metadata.startsWith('redrive/') && offset >= 0n,
  );
  return new Map(foreign.map((one) => [partitionKey(one), one.offset]));
}
