import { metadataV10, metadataV11, metadataV12 } from '@platformatic/kafka';
import { AppError } from '../../../kernel/errors.ts';
import { offered } from './api-version.ts';
import { endpointKey, type Connections, type Endpoint, type Link } from './connections.ts';
import { hasPassed, noLaterThan, type Deadline } from './deadline.ts';
import { protocolCode, responseOf, toAppError } from './kafka-errors.ts';

/** A topic as the cluster described it. If `code` is set, it could not be described, and the other fields are invalid. */
export type TopicView = Readonly<{
  topic: string;
  topicId: string;
  isInternal: boolean;
  code: string | undefined;
  /** Only if rights were requested; true if the cluster does not report them. */
  mayWrite?: boolean;
  /** The leader's node by partition; -1 if there is none. */
  leaders: readonly number[];
  readAtMs: number;
}>;

export type ClusterView = Readonly<{
  clusterId: string;
  nodes: readonly number[];
  topics: ReadonlyMap<string, TopicView>;
}>;

/**
 * Each purpose has its own connections: a fetch waits on the broker and blocks every later request on its connection.
 * `verify`: fetches of a request, whose timeout must not close the reader's connection.
 */
export type Purpose = 'control' | 'fetch' | 'verify' | 'produce';

export type Cluster = Readonly<{
  askAny<T>(deadline: Deadline, what: string, question: (link: Link) => Promise<T>): Promise<T>;
  askNode<T>(
    to: Readonly<{ node: number; purpose: Purpose }>,
    deadline: Deadline,
    what: string,
    question: (link: Link) => Promise<T>,
  ): Promise<T>;
  /** Requests the metadata of these topics or of all, optionally with our rights. */
  describe(topics: readonly string[] | 'all', deadline: Deadline, withRights?: boolean): Promise<ClusterView>;
  /** Like `describe`, but uses cached metadata that is not older than `maxAgeMs`. */
  topics(
    topics: readonly string[],
    deadline: Deadline,
    maxAgeMs?: number,
  ): Promise<ReadonlyMap<string, TopicView>>;
  /** Removes the topic from the cache. */
  forget(topic: string): void;
}>;

/** A topic that was deleted and made again is noticed after this time at the latest. */
const knownForMs = 60_000;
/** Then the next broker is tried; publishing has a shorter deadline of its own. */
const connectPatienceMs = 5000;

export function createCluster(
  bootstrap: readonly Endpoint[],
  connections: Readonly<Record<Purpose, Connections>>,
): Cluster {
  const known = new Map<string, TopicView>();
  let nodes: ReadonlyMap<number, Endpoint> = new Map();
  let lastGood: Endpoint | undefined;

  /** The one that answered last, then the nodes of the cluster, then the configured ones. */
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

  const describe: Cluster['describe'] = async (topics, deadline, withRights = false) => {
    const response = await askAny(deadline, 'metadata', (link) => {
      const api = offered(link, [metadataV12.api, metadataV11.api, metadataV10.api]);
      const names = topics === 'all' ? null : [...topics];
      return responseOf(api.async(link.connection, names, false, withRights));
    });
    nodes = new Map(response.brokers.map(({ nodeId, host, port }) => [nodeId, { host, port }]));
    const views = topicViews(response, withRights);
    if (topics === 'all') known.clear();
    for (const topic of topics === 'all' ? [] : topics) known.delete(topic);
    for (const view of views.values()) if (view.code === undefined) known.set(view.topic, view);
    return { clusterId: response.clusterId ?? '', nodes: [...nodes.keys()], topics: views };
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

const rightsNotReported = -(2 ** 31);
/** The bit of Kafka's operation WRITE. */
const writeBit = 1 << 4;

function topicViews(
  response: metadataV12.MetadataResponse,
  withRights: boolean,
): ReadonlyMap<string, TopicView> {
  const readAtMs = performance.now();
  const views = new Map<string, TopicView>();
  for (const { name, topicId, isInternal, errorCode, partitions, ...topic } of response.topics) {
    if (typeof name !== 'string') continue;
    const rights = topic.topicAuthorizedOperations;
    const mayWrite = rights === rightsNotReported || (rights & writeBit) !== 0;
    const leaders: number[] = [];
    for (const { partitionIndex, leaderId } of partitions) leaders[partitionIndex] = leaderId;
    const code = errorCode === 0 ? undefined : protocolCode(errorCode);
    const view = { topic: name, topicId, isInternal, code, leaders, readAtMs };
    views.set(name, withRights ? { ...view, mayWrite } : view);
  }
  return views;
}
