import { metadataV10, metadataV11, metadataV12 } from '@platformatic/kafka';
import { AppError } from '../../../kernel/errors.ts';
import { offered } from './api-version.ts';
import { endpointKey, type Connections, type Endpoint, type Link } from './connections.ts';
import { hasPassed, noLaterThan, type Deadline } from './deadline.ts';
import { protocolCode, responseOf, toAppError } from './kafka-errors.ts';

/** A topic as the cluster described it. `code` is set when it could not be described: then nothing else holds. */
export type TopicView = Readonly<{
  topic: string;
  topicId: string;
  isInternal: boolean;
  code: string | undefined;
  /** The leader's node by partition; -1 where there is none now. */
  leaders: readonly number[];
  readAtMs: number;
}>;

export type ClusterView = Readonly<{ clusterId: string; topics: ReadonlyMap<string, TopicView> }>;

/** Fetches wait on the broker's side and would hold up everything behind them, so each purpose has its connections. */
export type Purpose = 'control' | 'fetch' | 'produce';

export type Cluster = Readonly<{
  askAny<T>(deadline: Deadline, what: string, question: (link: Link) => Promise<T>): Promise<T>;
  askNode<T>(
    to: Readonly<{ node: number; purpose: Purpose }>,
    deadline: Deadline,
    what: string,
    question: (link: Link) => Promise<T>,
  ): Promise<T>;
  /** Asks the cluster now, for these topics or for all of them. */
  describe(topics: readonly string[] | 'all', deadline: Deadline): Promise<ClusterView>;
  /** As `describe`, but what is known and not older than `maxAgeMs` is not asked again. */
  topics(
    topics: readonly string[],
    deadline: Deadline,
    maxAgeMs?: number,
  ): Promise<ReadonlyMap<string, TopicView>>;
  /** What is known about the topic has proved wrong: ask again next time. */
  forget(topic: string): void;
}>;

const knownForMs = 60_000;
const connectPatienceMs = 5000;

export function createCluster(
  bootstrap: readonly Endpoint[],
  connections: Readonly<Record<Purpose, Connections>>,
): Cluster {
  const known = new Map<string, TopicView>();
  let nodes: ReadonlyMap<number, Endpoint> = new Map();
  let lastGood: Endpoint | undefined;

  /** The one that answered last, then those the cluster named, then those that were configured. */
  const candidates = (): readonly Endpoint[] => {
    const all = [...(lastGood ? [lastGood] : []), ...nodes.values(), ...bootstrap];
    return [...new Map(all.map((endpoint) => [endpointKey(endpoint), endpoint])).values()];
  };

  const askAny: Cluster['askAny'] = async (deadline, what, question) => {
    const errors: unknown[] = [];
    for (const endpoint of candidates()) {
      try {
        const patience = noLaterThan(deadline, connectPatienceMs);
        const answer = await connections.control.ask(endpoint, patience, what, question);
        lastGood = endpoint;
        return answer;
      } catch (error) {
        deadline.signal?.throwIfAborted();
        errors.push(error);
        if (hasPassed(deadline)) break;
      }
    }
    throw toAppError(errors.length === 1 ? errors[0] : new AggregateError(errors, 'no broker answered'));
  };

  const describe: Cluster['describe'] = async (topics, deadline) => {
    const response = await askAny(deadline, 'metadata', (link) => {
      const api = offered(link, [metadataV12.api, metadataV11.api, metadataV10.api]);
      return responseOf(api.async(link.connection, topics === 'all' ? null : [...topics], false, false));
    });
    nodes = new Map(response.brokers.map(({ nodeId, host, port }) => [nodeId, { host, port }]));
    const views = topicViews(response);
    if (topics === 'all') known.clear();
    for (const topic of topics === 'all' ? [] : topics) known.delete(topic);
    for (const view of views.values()) if (view.code === undefined) known.set(view.topic, view);
    return { clusterId: response.clusterId ?? '', topics: views };
  };

  return {
    askAny,
    askNode: async ({ node, purpose }, deadline, what, question) => {
      const endpoint = nodes.get(node);
      if (!endpoint)
        throw new AppError('SYS_BROKER_UNAVAILABLE', 'unavailable', `broker node ${node} is unknown`);
      return connections[purpose].ask(endpoint, deadline, what, question);
    },
    describe,
    topics: async (topics, deadline, maxAgeMs = knownForMs) => {
      const oldest = performance.now() - maxAgeMs;
      const found = new Map<string, TopicView>();
      const missing: string[] = [];
      for (const topic of new Set(topics)) {
        const view = known.get(topic);
        if (view && view.readAtMs >= oldest) found.set(topic, view);
        else missing.push(topic);
      }
      if (missing.length === 0) return found;
      const fresh = await describe(missing, deadline);
      return new Map([...found, ...fresh.topics]);
    },
    forget: (topic) => void known.delete(topic),
  };
}

function topicViews(response: metadataV12.MetadataResponse): ReadonlyMap<string, TopicView> {
  const readAtMs = performance.now();
  const views = new Map<string, TopicView>();
  for (const { name, topicId, isInternal, errorCode, partitions } of response.topics) {
    if (typeof name !== 'string') continue;
    const leaders: number[] = [];
    for (const { partitionIndex, leaderId } of partitions) leaders[partitionIndex] = leaderId;
    const code = errorCode === 0 ? undefined : protocolCode(errorCode);
    views.set(name, { topic: name, topicId, isInternal, code, leaders, readAtMs });
  }
  return views;
}
