import type { Broker } from '../../platform/broker/port.ts';

/** What the broker says about a topic that is to be published to. */
export type ExaminedTarget = Readonly<{
  state: 'writable' | 'missing' | 'denied' | 'unknown';
  /** Consumer groups with committed offsets of the topic; null if they are not known. */
  groups: readonly string[] | null;
}>;

export type ExaminingBroker = Pick<Broker, 'unwritable' | 'groups' | 'committed' | 'partitions'>;

/** A person waits for the answer. */
const timeoutMs = 3000;
const parallelGroups = 8;
/** Each is asked for its offsets. */
const maxGroups = 200;

/** Never rejects: a broker that does not answer in time leaves it unknown. */
export async function examineTarget(broker: ExaminingBroker | null, topic: string): Promise<ExaminedTarget> {
  if (broker === null) return { state: 'unknown', groups: null };
  const signal = AbortSignal.timeout(timeoutMs);
  const [state, groups] = await Promise.all([
    withinTime(
      signal,
      async () => (await broker.unwritable([topic], signal)).get(topic)?.problem ?? 'writable',
    ),
    withinTime(signal, () => findReaders(broker, topic, signal)),
  ]);
  return { state: state ?? 'unknown', groups };
}

/** Null if it fails, or is not done before the signal. */
async function withinTime<Found>(
  signal: AbortSignal,
  find: () => Promise<Found | null>,
): Promise<Found | null> {
  const { promise: isOver, resolve } = Promise.withResolvers<null>();
  const end = (): void => resolve(null);
  signal.addEventListener('abort', end, { once: true });
  try {
    return await Promise.race([find().catch(() => null), isOver]);
  } finally {
    signal.removeEventListener('abort', end);
  }
}

async function findReaders(
  broker: ExaminingBroker,
  topic: string,
  signal: AbortSignal,
): Promise<readonly string[] | null> {
  const [groups, { partitions }] = await Promise.all([
    broker.groups(signal),
    broker.partitions((name) => name === topic, signal, [topic]),
  ]);
  if (groups.length > maxGroups) return null;
  const readers: string[] = [];
  for (let from = 0; from < groups.length; from += parallelGroups) {
    const some = groups.slice(from, from + parallelGroups);
    const offsets = await Promise.all(some.map((group) => broker.committed(group, partitions, signal)));
    readers.push(...some.filter((_, i) => offsets[i]?.some((one) => one.topic === topic)));
  }
  return readers.toSorted();
}
