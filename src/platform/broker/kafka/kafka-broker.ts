import type { ConnectionOptions as TlsOptions } from 'node:tls';
import type { ConnectionOptions } from '@platformatic/kafka';
import { AppError } from '../../../kernel/errors.ts';
import type { Broker, PartitionRef } from '../port.ts';
import { createCluster, type Cluster } from './cluster.ts';
import { createConnections, type Endpoint } from './connections.ts';
import { deadlineIn, within, type Deadline } from './deadline.ts';
import { fetchRecords } from './fetch-records.ts';
import { committedOffsets, listGroups, mirrorPositions } from './group-offsets.ts';
import { protocolMessage } from './kafka-errors.ts';
import { firstSince, lastStable, listOffsets, partitionKey } from './list-offsets.ts';
import { listPartitions } from './list-partitions.ts';
import { createTopic, deleteTopic } from './manage-topics.ts';
import { createPublisher } from './publish-records.ts';
import { saslOptions, type SaslCredentials } from './sasl.ts';
import { unwritableTopics } from './unwritable-topics.ts';

export type SecurityProtocol = 'PLAINTEXT' | 'SSL' | 'SASL_PLAINTEXT' | 'SASL_SSL';

export type KafkaBrokerOptions = Readonly<{
  /** host:port each */
  brokers: readonly string[];
  securityProtocol: SecurityProtocol;
  sasl?: SaslCredentials;
  /** Read again for each new connection, so that getters may give renewed certificates. */
  tls?: TlsOptions;
  clientId: string;
}>;

/** For metadata and offsets, which no message waits for: a slow broker may take seconds. */
const askTimeoutMs = 10_000;
/** Creating a topic waits for its leaders. */
const topicTimeoutMs = 30_000;
/** Of the time that a process has to stop. */
const drainTimeoutMs = 2000;
const defaultPort = 9092;

/** Does not connect before the first call; each call handles an unavailable broker itself. */
export function createKafkaBroker(options: KafkaBrokerOptions): Broker {
  const connections = connectionsFor(options);
  const cluster = createCluster(options.brokers.map(parseEndpoint), connections);
  const publisher = createPublisher(cluster);
  const publishing = new Set<Promise<unknown>>();

  return {
    clusterId: async (signal) => (await cluster.describe([], asking(signal))).clusterId,
    partitions: (matches, signal, expected = []) =>
      listPartitions(cluster, { matches, expected }, asking(signal)),
    fetch: (positions, limits, signal) => fetchRecords(cluster, positions, limits, signal),
    offsetAt: (partition, timestampMs, signal) => offsetAt(cluster, partition, timestampMs, asking(signal)),
    groups: (signal) => listGroups(cluster, asking(signal)),
    committed: (group, partitions, signal) => committedOffsets(cluster, group, partitions, asking(signal)),
    mirror: (group, positions, signal) => mirrorPositions(cluster, group, positions, asking(signal)),
    unwritable: (topics, signal) => unwritableTopics(cluster, topics, asking(signal)),
    publish: async (records, publishOptions) => {
      const published = publisher(records, publishOptions);
      publishing.add(published);
      try {
        return await published;
      } finally {
        publishing.delete(published);
      }
    },
    createTopic: (topic, partitions) => createTopic(cluster, topic, partitions, deadlineIn(topicTimeoutMs)),
    deleteTopic: (topic) => deleteTopic(cluster, topic, deadlineIn(topicTimeoutMs)),
    close: async () => {
      const drained = Promise.allSettled(publishing);
      await within(deadlineIn(drainTimeoutMs), 'publishing', drained).catch(() => {});
      for (const some of Object.values(connections)) some.close();
    },
  };
}

const asking = (signal?: AbortSignal): Deadline => deadlineIn(askTimeoutMs, signal);

/** Writes time out early, because the broker recognises a batch that is sent again; a fetch waits longer. */
function connectionsFor({ clientId, securityProtocol, sasl, tls }: KafkaBrokerOptions) {
  const usesTls = securityProtocol === 'SSL' || securityProtocol === 'SASL_SSL';
  const usesSasl = securityProtocol === 'SASL_PLAINTEXT' || securityProtocol === 'SASL_SSL';
  if (usesSasl && !sasl)
    throw new AppError('SYS_BROKER_CONFIG', 'validation', `${securityProtocol} needs kafka.sasl`);
  const security: ConnectionOptions = {
    ...(usesTls ? { tls: tls ?? {} } : {}),
    ...(usesSasl && sasl ? { sasl: saslOptions(sasl) } : {}),
  };
  const patient = { ...security, connectTimeout: 3000, requestTimeout: 60_000, maxInflights: 16 };
  const quick = { ...security, connectTimeout: 1500, requestTimeout: 1500, maxInflights: 5 };
  return {
    control: createConnections(clientId, patient),
    fetch: createConnections(clientId, patient),
    verify: createConnections(clientId, patient),
    produce: createConnections(clientId, quick),
  };
}

function parseEndpoint(broker: string): Endpoint {
  const { hostname, port } = new URL(`kafka://${broker}`);
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? defaultPort : Number(port) };
}

async function offsetAt(
  cluster: Cluster,
  partition: PartitionRef,
  timestamp: bigint,
  deadline: Deadline,
): Promise<bigint> {
  const view = (await cluster.topics([partition.topic], deadline)).get(partition.topic);
  const node = view?.topicId === partition.topicId ? view.leaders[partition.partition] : undefined;
  if (node === undefined) throw offsetError(partition, view?.code ?? 'UNKNOWN_TOPIC_ID');
  const ask = async (at: typeof lastStable): Promise<bigint> => {
    const listed = await listOffsets(cluster, { node, partitions: [partition], at }, deadline);
    const found = listed.get(partitionKey(partition)) ?? { code: 'UNKNOWN_SERVER_ERROR' };
    if ('offset' in found) return found.offset;
    cluster.forget(partition.topic);
    throw offsetError(partition, found.code);
  };
  // Negative timestamps have special meanings.
  const found = await ask(firstSince(timestamp < 0n ? 0n : timestamp));
  return found >= 0n ? found : ask(lastStable);
}

const offsetError = ({ topic, partition }: PartitionRef, code: string): AppError =>
  new AppError(
    'SYS_BROKER_OFFSET_UNKNOWN',
    'unavailable',
    `${code} for ${topic}/${partition}: ${protocolMessage(code)}`,
  );
