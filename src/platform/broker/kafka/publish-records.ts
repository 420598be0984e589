import type { OutgoingRecord, PublishOptions, PublishResult } from '../port.ts';
import type { Cluster, TopicView } from './cluster.ts';
import { deadlineIn, type Deadline } from './deadline.ts';
import { isRetriable, protocolMessage } from './kafka-errors.ts';
import { createLane, type Lane } from './lane.ts';
import { partitionOfKey } from '../partitioner.ts';
import { createProducerSessions } from './producer-sessions.ts';
import { chunkEnd, type ChunkLimits } from './record-chunks.ts';
import { notSent, type SendOutcome } from './send-chunk.ts';
import { createSlots, type Slots } from './slots.ts';

export type Publisher = (
  records: readonly OutgoingRecord[],
  options: PublishOptions,
) => Promise<readonly PublishResult[]>;

/** The records of one call that go to one partition, in order, with their places in the caller's list. */
type Share = Readonly<{
  topic: TopicView;
  partition: number;
  records: OutgoingRecord[];
  indexes: number[];
}>;

type State = Readonly<{
  cluster: Cluster;
  /** Sends that are under way to a node; one that hangs does not hold up the others. */
  slotsOf(node: number): Slots;
  laneOf(topicId: string, partition: number): Lane;
  /** Round robin per topic for records without a key. */
  nextTurn(topic: string): number;
}>;

const chunkLimits = { records: 500, bytes: 900_000 } as const;
const sendsAtOncePerNode = 16;
/** The batch as a whole was refused; without the record at fault the rest of it is welcome. */
const divisible: ReadonlySet<string> = new Set([
  'MESSAGE_TOO_LARGE',
  'RECORD_LIST_TOO_LARGE',
  'INVALID_RECORD',
]);

export function createPublisher(cluster: Cluster): Publisher {
  const lanes = new Map<string, Lane>();
  const turns = new Map<string, number>();
  const slotsByNode = new Map<number, Slots>();
  const sessions = createProducerSessions(cluster);
  const state: State = {
    cluster,
    slotsOf: (node) => {
      const slots = slotsByNode.get(node) ?? createSlots(sendsAtOncePerNode);
      slotsByNode.set(node, slots);
      return slots;
    },
    laneOf: (topicId, partition) => {
      const key = `${topicId}:${partition}`;
      const lane = lanes.get(key) ?? createLane(cluster, sessions);
      lanes.set(key, lane);
      return lane;
    },
    nextTurn: (topic) => {
      const turn = turns.get(topic) ?? 0;
      turns.set(topic, turn + 1);
      return turn;
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
    await Promise.all(shares.map((share) => sendShare(state, share, results, deadline)));
  } catch (error) {
    const failure = notSent(error, signal);
    for (const index of records.keys()) results[index] ??= failure;
  }
  return results;
}

/** Deals the records out to their partitions; those whose topic cannot be written to get their result at once. */
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
    if (share) {
      share.records.push(record);
      share.indexes.push(index);
    } else ofTopic.set(partition, { topic, partition, records: [record], indexes: [index] });
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
  retriable: code !== unknownTopic && isRetriable(code),
  code,
  message: protocolMessage(code),
});

/** Without a key, in turn over the partitions that have a leader; with one, where the Java client would put it. */
function partitionFor(state: State, { topic, leaders }: TopicView, key: Buffer | null): number {
  if (key) return partitionOfKey(key, leaders.length);
  for (let tried = 0; tried < leaders.length; tried++) {
    const partition = state.nextTurn(topic) % leaders.length;
    if ((leaders[partition] ?? -1) >= 0) return partition;
  }
  return 0;
}

/** The first chunk that is not acked stops the share: its records tell why, those behind it are held back. */
async function sendShare(
  state: State,
  share: Share,
  results: PublishResult[],
  deadline: Deadline,
): Promise<void> {
  const { indexes } = share;
  const lane = state.laneOf(share.topic.topicId, share.partition);
  let from = 0;
  try {
    await lane.turn.use(deadline, async () => {
      for await (const { outcome, end } of sendChunks(state, lane, share, deadline)) {
        for (let at = from; at < end; at++)
          results[indexes[at] ?? 0] = toResult(outcome, { partition: share.partition, at: at - from });
        if (outcome.outcome === 'acked') from = end;
      }
    });
  } catch (error) {
    const failure = notSent(error, deadline.signal);
    for (const index of indexes.slice(from)) results[index] ??= failure;
  }
  const behind = indexes[from];
  if (behind !== undefined)
    for (const index of indexes.slice(from)) results[index] ??= { result: 'skipped', behind };
}

/** Chunk after chunk until one is not acked. A refused batch is divided until the record at fault stands alone. */
async function* sendChunks(
  state: State,
  lane: Lane,
  { topic, partition, records }: Share,
  deadline: Deadline,
): AsyncGenerator<Readonly<{ outcome: SendOutcome; end: number }>> {
  const slots = state.slotsOf(topic.leaders[partition] ?? -1);
  let limits: ChunkLimits = chunkLimits;
  for (let from = 0; from < records.length;) {
    const end = chunkEnd(records, from, limits);
    const chunk = {
      topic: topic.topic,
      topicId: topic.topicId,
      partition,
      records: records.slice(from, end),
    };
    const outcome = await slots.use(deadline, () => lane.send(chunk, deadline));
    if (outcome.outcome === 'failed' && end - from > 1 && divisible.has(outcome.code)) {
      limits = { ...limits, records: Math.ceil((end - from) / 2) };
      continue;
    }
    yield { outcome, end };
    if (outcome.outcome !== 'acked') return;
    from = end;
  }
}

function toResult(outcome: SendOutcome, of: Readonly<{ partition: number; at: number }>): PublishResult {
  if (outcome.outcome === 'acked')
    return { result: 'acked', partition: of.partition, offset: outcome.baseOffset + BigInt(of.at) };
  const { code, message } = outcome;
  if (outcome.outcome === 'unknown') return { result: 'unknown', code, message };
  return { result: 'failed', retriable: outcome.retriable, code, message };
}
