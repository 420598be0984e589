import { messageOf } from '../../../kernel/errors.ts';
import { readCommitted, type GroupBroker } from '../consumer-groups.ts';
import type { PlannedTarget } from './plan-tally.ts';

export type Readers = Readonly<{
  targets: readonly PlannedTarget[];
  /** Why the groups that read the targets are not known; null if they are. */
  groups_error: string | null;
}>;

const maxGroups = 100;
/** The plan is of use without them. */
const timeoutMs = 10_000;

/**
 * Adds to each target the consumer groups that read it: those that have committed an offset of it, besides those that
 * failed on its messages. All of them get what a redrive sends, also those that have processed it before.
 */
export async function addReaders(
  broker: GroupBroker | null,
  targets: readonly PlannedTarget[],
  leased: AbortSignal,
): Promise<Readers> {
  if (broker === null || targets.length === 0) return { targets, groups_error: null };
  const signal = AbortSignal.any([leased, AbortSignal.timeout(timeoutMs)]);
  try {
    const readers = await findReaders(broker, new Set(targets.map(({ topic }) => topic)), signal);
    const withReaders = targets.map((target) => {
      const all = new Set([...target.failed_groups, ...(readers.get(target.topic) ?? [])]);
      return { ...target, groups: [...all].slice(0, maxGroups).toSorted() };
    });
    return { targets: withReaders, groups_error: null };
  } catch (error) {
    return { targets, groups_error: messageOf(error) };
  }
}

async function findReaders(
  broker: GroupBroker,
  topics: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const listing = await broker.partitions((topic) => topics.has(topic), signal, [...topics]);
  const committed = await readCommitted(broker, { partitions: listing.partitions, named: [] }, signal);
  const readers = new Map<string, Set<string>>();
  for (const [group, offsets] of committed)
    for (const { topic } of offsets) readers.set(topic, (readers.get(topic) ?? new Set()).add(group));
  return readers;
}
