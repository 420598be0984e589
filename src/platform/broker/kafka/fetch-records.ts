import { fetchV13, fetchV14, fetchV15, fetchV16, fetchV17 } from '@platformatic/kafka';
import type { FetchErrorKind, FetchFailure, FetchLimits, FetchResult, Position } from '../port.ts';
import { offered } from './api-version.ts';
import type { Cluster, TopicView } from './cluster.ts';
import { deadlineIn, type Deadline } from './deadline.ts';
import {
  fetchErrorKind,
  isConnectionTrouble,
  protocolCode,
  protocolMessage,
  responseOf,
  toAppError,
} from './kafka-errors.ts';
import { earliest, highWatermark, listOffsets, partitionKey } from './list-offsets.ts';
import { readCommitted } from './read-committed.ts';

/** A position with its index in the caller's list and the node that leads its partition. */
type Placed = Readonly<{ index: number; position: Position; node: number }>;

type FetchResponse = fetchV17.FetchResponse;
type FetchResponsePartition = fetchV17.FetchResponsePartition;

type Answer = Readonly<{ index: number; result: FetchResult }>;

type NodeFetch = Readonly<{ node: number; placed: readonly Placed[]; limits: FetchLimits }>;

/** How long a response may take beyond the requested wait. */
const answerPatienceMs = 5000;

const readCommittedOnly = 1;
const noSession = [0, -1] as const;

/**
 * One result per position, in order. Sends requests to all leaders in parallel. Refreshes a topic's metadata before it
 * reports a partition as gone, and after an error.
 */
export async function fetchRecords(
  cluster: Cluster,
  positions: readonly Position[],
  limits: FetchLimits,
  signal?: AbortSignal,
): Promise<readonly FetchResult[]> {
  const deadline = deadlineIn(limits.maxWaitMs + answerPatienceMs, signal);
  const { placed, answers } = await place(cluster, positions, deadline);
  const byNode = Map.groupBy(rotated(placed), ({ node }) => node);
  const failures: unknown[] = [];
  const fetched = await Promise.all(
    [...byNode].map(async ([node, group]) => {
      try {
        return await fetchFromNode(cluster, { node, placed: group, limits }, deadline);
      } catch (error) {
        signal?.throwIfAborted();
        failures.push(error);
        return unreachable(cluster, group, error);
      }
    }),
  );
  if (failures.length > 0 && failures.length === byNode.size && answers.length === 0)
    throw toAppError(failures[0]);
  const results: FetchResult[] = [];
  for (const { index, result } of [...answers, ...fetched.flat()]) results[index] = result;
  return results;
}

/** Finds the leaders. Positions whose partition has none, or is gone, get their result at once. */
async function place(
  cluster: Cluster,
  positions: readonly Position[],
  deadline: Deadline,
): Promise<Readonly<{ placed: readonly Placed[]; answers: readonly Answer[] }>> {
  const names = positions.map(({ topic }) => topic);
  let topics = await cluster.topics(names, deadline);
  const doubtful = positions.filter((position) => typeof leaderOf(topics, position) === 'string');
  if (doubtful.length > 0) {
    const fresh = await cluster.topics(
      doubtful.map(({ topic }) => topic),
      deadline,
      0,
    );
    topics = new Map([...topics, ...fresh]);
  }
  const placed: Placed[] = [];
  const answers: Answer[] = [];
  for (const [index, position] of positions.entries()) {
    const node = leaderOf(topics, position);
    if (typeof node === 'number') placed.push({ index, position, node });
    else answers.push({ index, result: failed(position, node) });
  }
  return { placed, answers };
}

/**
 * The broker fills the response in the order of the request, and only the first partition may exceed its limit with one
 * large batch. A random start keeps every partition from starving.
 */
function rotated<T>(items: readonly T[]): readonly T[] {
  const start = Math.floor(Math.random() * items.length);
  return [...items.slice(start), ...items.slice(0, start)];
}

/** The node that leads the partition, or the code that says why there is none. */
function leaderOf(topics: ReadonlyMap<string, TopicView>, position: Position): number | string {
  const view = topics.get(position.topic);
  if (!view) return 'UNKNOWN_TOPIC_OR_PARTITION';
  if (view.code !== undefined) return view.code;
  if (view.topicId !== position.topicId) return 'UNKNOWN_TOPIC_ID';
  const node = view.leaders[position.partition];
  if (node === undefined) return 'UNKNOWN_TOPIC_OR_PARTITION';
  return node < 0 ? 'LEADER_NOT_AVAILABLE' : node;
}

async function fetchFromNode(
  cluster: Cluster,
  fetch: NodeFetch,
  deadline: Deadline,
): Promise<readonly Answer[]> {
  const { placed } = fetch;
  let response: FetchResponse;
  try {
    response = await ask(cluster, fetch, deadline);
  } catch (error) {
    deadline.signal?.throwIfAborted();
    if (isConnectionTrouble(error)) throw error;
    const [first, ...others] = placed;
    if (first && others.length === 0)
      return [{ index: first.index, result: unreadable(first.position, error) }];
    // One partition's bytes cannot be parsed: fetch each alone, so that the others are not blocked.
    const alone = placed.map((one) => fetchFromNode(cluster, { ...fetch, placed: [one] }, deadline));
    return (await Promise.all(alone)).flat();
  }
  if (response.errorCode !== 0) throw new Error(protocolMessage(protocolCode(response.errorCode)));
  const partitions = new Map<string, FetchResponsePartition>();
  for (const { topicId, partitions: found } of response.responses)
    for (const partition of found) partitions.set(`${topicId}:${partition.partitionIndex}`, partition);
  const results = placed.map(({ index, position }) => {
    const partition = partitions.get(`${position.topicId}:${position.partition}`);
    return {
      index,
      result: partition ? toResult(position, partition) : failed(position, 'UNKNOWN_SERVER_ERROR'),
    };
  });
  return explain(cluster, { ...fetch, results }, deadline);
}

function ask(
  cluster: Cluster,
  { node, placed, limits }: NodeFetch,
  deadline: Deadline,
): Promise<FetchResponse> {
  const byTopic = Map.groupBy(placed, ({ position }) => position.topicId);
  const topics = [...byTopic].map(([topicId, group]) => ({
    topicId,
    partitions: group.map(({ position }) => ({
      partition: position.partition,
      currentLeaderEpoch: -1,
      fetchOffset: position.offset,
      lastFetchedEpoch: -1,
      partitionMaxBytes: limits.maxBytesPerPartition,
    })),
  }));
  const { purpose = 'fetch' } = limits;
  return cluster.askNode({ node, purpose }, deadline, 'fetch', (link) => {
    const api = offered(link, [fetchV17.api, fetchV16.api, fetchV15.api, fetchV14.api, fetchV13.api]);
    const { maxWaitMs, maxBytes } = limits;
    const sizes = [maxWaitMs, 1, maxBytes, readCommittedOnly] as const;
    return responseOf(api.async(link.connection, ...sizes, ...noSession, topics, [], ''));
  });
}

function toResult(position: Position, partition: FetchResponsePartition): FetchResult {
  if (partition.errorCode !== 0) return failed(position, protocolCode(partition.errorCode));
  const { topic, topicId, partition: number, offset } = position;
  const { records, skipped, nextOffset } = readCommitted(
    partition.records ?? [],
    partition.abortedTransactions ?? [],
    offset,
  );
  return {
    topic,
    topicId,
    partition: number,
    records,
    nextOffset,
    skipped,
    start: partition.logStartOffset,
    end: partition.highWatermark,
    stableEnd: partition.lastStableOffset,
  };
}

/**
 * Completes failures with another request: the log ends for a position out of range, and whether a topic that this node
 * does not know is gone or only not known to it yet.
 */
async function explain(
  cluster: Cluster,
  fetch: NodeFetch & Readonly<{ results: readonly Answer[] }>,
  deadline: Deadline,
): Promise<readonly Answer[]> {
  const troubled = fetch.results.filter(({ result }) => 'error' in result);
  if (troubled.length === 0) return fetch.results;
  for (const { result } of troubled) cluster.forget(result.topic);
  const explained = await Promise.all(
    troubled.map(async ({ index, result }) => {
      if (!('error' in result)) return { index, result };
      if (result.error.kind === 'out_of_range')
        return { index, result: await withRange(cluster, { node: fetch.node, failure: result }, deadline) };
      if (result.error.kind === 'gone') return { index, result: await reallyGone(cluster, result, deadline) };
      return { index, result };
    }),
  );
  const byIndex = new Map(explained.map((answer) => [answer.index, answer]));
  return fetch.results.map((answer) => byIndex.get(answer.index) ?? answer);
}

async function withRange(
  cluster: Cluster,
  of: Readonly<{ node: number; failure: FetchFailure }>,
  deadline: Deadline,
): Promise<FetchFailure> {
  const { node, failure } = of;
  const partitions = [failure];
  const [starts, ends] = await Promise.all([
    listOffsets(cluster, { node, partitions, at: earliest }, deadline),
    listOffsets(cluster, { node, partitions, at: highWatermark }, deadline),
  ]);
  const start = starts.get(partitionKey(failure));
  const end = ends.get(partitionKey(failure));
  if (!start || !end || 'code' in start || 'code' in end) return withKind(failure, 'unavailable');
  return { ...failure, error: { ...failure.error, start: start.offset, end: end.offset } };
}

async function reallyGone(
  cluster: Cluster,
  failure: FetchFailure,
  deadline: Deadline,
): Promise<FetchFailure> {
  const { topics } = await cluster.describe([failure.topic], deadline);
  const node = leaderOf(topics, { ...failure, offset: 0n });
  return typeof node === 'number' ? withKind(failure, 'moved') : failed(failure, node);
}

function unreachable(cluster: Cluster, placed: readonly Placed[], error: unknown): readonly Answer[] {
  const { code, message } = toAppError(error);
  return placed.map(({ index, position }) => {
    cluster.forget(position.topic);
    return { index, result: failure(position, { kind: 'unavailable', code, message }) };
  });
}

const unreadable = (position: Position, error: unknown): FetchFailure =>
  failure(position, { kind: 'unavailable', code: 'UNREADABLE_RECORDS', message: toAppError(error).message });

const failed = (where: Omit<Position, 'offset'>, code: string): FetchFailure =>
  failure(where, { kind: fetchErrorKind(code), code, message: protocolMessage(code) });

const withKind = (of: FetchFailure, kind: FetchErrorKind): FetchFailure => ({
  ...of,
  error: { ...of.error, kind },
});

const failure = (
  { topic, topicId, partition }: Omit<Position, 'offset'>,
  error: FetchFailure['error'],
): FetchFailure => ({ topic, topicId, partition, error });
