import type { Broker, PartitionInfo } from '../../platform/broker/port.ts';

export type GroupBroker = Pick<Broker, 'groups' | 'committed' | 'partitions'>;
export type Committed = Awaited<ReturnType<Broker['committed']>>;

const parallelGroups = 8;

/** The offsets of the named groups, and of every group of the cluster that has committed one of these partitions. */
export async function readCommitted(
  broker: Pick<GroupBroker, 'groups' | 'committed'>,
  { partitions, named }: Readonly<{ partitions: readonly PartitionInfo[]; named: readonly string[] }>,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Committed>> {
  const all = [...new Set([...named, ...(await broker.groups(signal))])];
  const committed = new Map<string, Committed>();
  for (let from = 0; from < all.length; from += parallelGroups) {
    const some = all.slice(from, from + parallelGroups);
    const found = await Promise.all(some.map((group) => broker.committed(group, partitions, signal)));
    some.forEach((group, i) => committed.set(group, found[i] ?? []));
  }
  const isNamed = new Set(named);
  return new Map([...committed].filter(([group, offsets]) => offsets.length > 0 || isNamed.has(group)));
}
