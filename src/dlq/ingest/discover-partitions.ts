import type { PartitionRef } from '../../kernel/broker-record.ts';
import type { Broker } from '../../platform/broker/port.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { addPartitions, listKnownPartitions, observePartitions } from './partitions-table.ts';

export type DiscoverDeps = Readonly<{
  db: Queryable;
  broker: Broker;
  isDeadLetterTopic: (topic: string) => boolean;
  /** Topics that the configuration names without a wildcard. */
  namedTopics: readonly string[];
  group: string;
  onTrouble: (topic: string, message: string) => void;
}>;

export type Discovered = Readonly<{
  clusterId: string;
  nodeOf: ReadonlyMap<string, number>;
  /** Topics that could not be examined: partitions that were not listed may still exist. */
  unknownTopics: ReadonlySet<string>;
  /** Those of them that we may not describe. */
  denied: readonly string[];
}>;

export function partitionKey({ topicId, partition }: PartitionRef): string {
  return `${topicId}/${partition}`;
}

/**
 * Finds the partitions of all dead-letter topics and adds a row for each new one. A partition of a topic that we do not
 * know by name begins at the offset that the consumer group committed, so that a running installation is taken over
 * without loss. Otherwise it begins at the earliest record: a topic that was created again is read from its start. If
 * the committed offsets cannot be read, nothing is added.
 */
export async function discoverPartitions(deps: DiscoverDeps, signal: AbortSignal): Promise<Discovered> {
  const known = await listKnownPartitions(deps.db, await deps.broker.clusterId(signal));
  // A topic that we may not describe any more is not listed, and yet it may exist: these are asked for by name.
  const expected = new Set([...deps.namedTopics, ...known.flatMap((one) => (one.isGone ? [] : one.topic))]);
  const listing = await deps.broker.partitions(deps.isDeadLetterTopic, signal, [...expected]);
  for (const { topic, code, message } of listing.troubles) deps.onTrouble(topic, `${code}: ${message}`);

  const knownKeys = new Set(known.map(partitionKey));
  const knownTopics = new Set(known.map(({ topic }) => topic));
  const unknownTopics = new Set(listing.troubles.map(({ topic }) => topic));
  // A new topic is added as a whole: partitions added later would look like those of a topic created again.
  const found = listing.partitions.filter(
    (partition) =>
      !knownKeys.has(partitionKey(partition)) &&
      (knownTopics.has(partition.topic) || !unknownTopics.has(partition.topic)),
  );
  if (found.length > 0) {
    const ofNewTopics = found.filter(({ topic }) => !knownTopics.has(topic));
    const committed = await readCommitted(deps, ofNewTopics, signal);
    const firstOffsetOf = (partition: (typeof found)[number]): bigint =>
      committed.get(partitionKey(partition)) ?? partition.start;
    await addPartitions(
      deps.db,
      listing.clusterId,
      found.map((partition) => ({ ...partition, firstOffset: firstOffsetOf(partition) })),
    );
  }
  await observePartitions(deps.db, listing.clusterId, { found: listing.partitions, unknownTopics });
  const nodes = listing.partitions.map((partition) => [partitionKey(partition), partition.node] as const);
  const denied = new Set(listing.troubles.flatMap(({ isDenied, topic }) => (isDenied ? topic : [])));
  return { clusterId: listing.clusterId, nodeOf: new Map(nodes), unknownTopics, denied: [...denied] };
}

/** Leaves out offsets that we committed ourselves: they are not the progress of another reader. */
async function readCommitted(
  deps: DiscoverDeps,
  partitions: readonly PartitionRef[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, bigint>> {
  if (partitions.length === 0) return new Map();
  const committed = await deps.broker.committed(deps.group, partitions, signal);
  const ofOthers = committed.filter(
    ({ metadata, offset }) => !metadata.startsWith('redrive/') && offset >= 0n,
  );
  return new Map(ofOthers.map((one) => [partitionKey(one), one.offset]));
}
