import { createTopicsV7, deleteTopicsV6 } from '@platformatic/kafka';
import { sleep } from '../../../kernel/clock.ts';
import { AppError } from '../../../kernel/errors.ts';
import { offered } from './api-version.ts';
import type { Cluster } from './cluster.ts';
import { hasPassed, type Deadline } from './deadline.ts';
import { protocolCode, protocolMessage, responseOf } from './kafka-errors.ts';
import { listPartitions } from './list-partitions.ts';

/** Of one request; the caller bounds the whole. */
const requestTimeoutMs = 5000;
/** A new topic usually has its leaders within a tenth of a second. */
const pollMs = 25;
const brokersDefault = -1;

/** Resolves when every partition has a leader that answers. Does nothing if the topic exists. */
export async function createTopic(
  cluster: Cluster,
  topic: string,
  partitions: number,
  deadline: Deadline,
): Promise<void> {
  const wanted = {
    name: topic,
    numPartitions: partitions,
    replicationFactor: brokersDefault,
    assignments: [],
    configs: [],
  };
  const { topics } = await cluster.askAny(deadline, `create topic ${topic}`, (link) =>
    responseOf(offered(link, [createTopicsV7.api]).async(link.connection, [wanted], requestTimeoutMs, false)),
  );
  const code = protocolCode(topics[0]?.errorCode ?? 0);
  if (code === 'TOPIC_ALREADY_EXISTS') return;
  if (code !== 'NONE') throw topicError(topic, code);
  await until(topic, deadline, async () => {
    const listing = await listPartitions(
      cluster,
      { matches: (name) => name === topic, expected: [] },
      deadline,
    );
    return listing.partitions.length === partitions;
  });
}

/** Resolves when the cluster no longer lists the topic, also if it did not exist. */
export async function deleteTopic(cluster: Cluster, topic: string, deadline: Deadline): Promise<void> {
  const { responses } = await cluster.askAny(deadline, `delete topic ${topic}`, (link) =>
    responseOf(
      offered(link, [deleteTopicsV6.api]).async(link.connection, [{ name: topic }], requestTimeoutMs),
    ),
  );
  const code = protocolCode(responses[0]?.errorCode ?? 0);
  if (code === 'UNKNOWN_TOPIC_OR_PARTITION') return;
  if (code !== 'NONE') throw topicError(topic, code);
  await until(topic, deadline, async () => {
    const { topics } = await cluster.describe([topic], deadline);
    return topics.get(topic)?.code === 'UNKNOWN_TOPIC_OR_PARTITION';
  });
}

async function until(topic: string, deadline: Deadline, holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) {
    if (hasPassed(deadline)) throw topicError(topic, 'REQUEST_TIMED_OUT');
    await sleep(pollMs, deadline.signal);
  }
}

const topicError = (topic: string, code: string): AppError =>
  new AppError(
    'SYS_BROKER_TOPIC_FAILED',
    'unavailable',
    `${code} for topic ${topic}: ${protocolMessage(code)}`,
  );
