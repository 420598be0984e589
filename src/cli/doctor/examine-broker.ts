import { compileTopicGlobs, createBroker } from '../../compose.ts';
import type { Config } from '../../config.ts';
import { AppError, messageOf } from '../../kernel/errors.ts';
import type { Broker, PartitionInfo, PartitionListing } from '../../platform/broker/port.ts';
import { attempt, ok, problem, skipped, warning, type Finding } from './finding.ts';

const maxNamed = 20;
/** Nothing is taken from the answer: only whether there is one. */
const peek = { maxWaitMs: 1, maxBytes: 1024, maxBytesPerPartition: 1024 } as const;

/** Looks at the configured Kafka as the reader would. It publishes nothing, commits nothing, makes no topic. */
export async function* examineBroker({ kafka }: Config): AsyncGenerator<Finding> {
  if (!kafka.enabled) {
    yield skipped(
      'kafka',
      'off: no dead letters are read, and a retry resolves its message without publishing it (the answer says so); set kafka.brokers to change that',
    );
    return;
  }
  if (kafka.local) {
    yield skipped('kafka', 'the local broker lives inside the serving process and cannot be seen from here');
    return;
  }
  const brokers = kafka.brokers.join(', ');
  let broker: Broker | null = null;
  try {
    broker = createBroker(kafka);
    if (broker === null) return;
    const matches = compileTopicGlobs(kafka.dlqTopicPattern);
    const listing = await broker.partitions(matches);
    yield ok('kafka', `${brokers}: cluster ${listing.clusterId}`);
    yield judgeTopics(listing, kafka.dlqTopicPattern, await unreadable(broker, listing.partitions));
    yield await examineGroup(broker, kafka.consumerGroup, listing.partitions);
    yield skipped(
      'publishing',
      'not tried, as nothing is published from here; a retry needs the right to write to the original topics',
    );
  } catch (error) {
    yield brokerTrouble(brokers, error);
  } finally {
    await broker?.close();
  }
}

function brokerTrouble(brokers: string, error: unknown): Finding {
  const advice: Readonly<Record<string, string>> = {
    SYS_BROKER_AUTHENTICATION_FAILED:
      'correct kafka.sasl.username, kafka.sasl.password or kafka.sasl.mechanism',
    SYS_BROKER_TLS_FAILED:
      "name the authority's certificate in kafka.tls.ca, and check kafka.security_protocol",
    SYS_BROKER_UNSUPPORTED: 'use Kafka 3.1 or later',
  };
  const code = error instanceof AppError ? error.code : '';
  return problem(
    'kafka',
    `${brokers}: ${messageOf(error)}`,
    advice[code] ?? 'start the broker, or correct kafka.brokers and kafka.security_protocol',
  );
}

type Unreadable = Readonly<{ topic: string; partition?: number; code: string }>;

/** Listing needs the right to describe, reading the right to read: so each partition is asked at its end. */
async function unreadable(
  broker: Broker,
  partitions: readonly PartitionInfo[],
): Promise<readonly Unreadable[]> {
  const byNode = Map.groupBy(partitions, ({ node }) => node);
  const results = await Promise.all(
    [...byNode.values()].map((some) =>
      broker.fetch(
        some.map(({ topic, topicId, partition, end }) => ({ topic, topicId, partition, offset: end })),
        peek,
      ),
    ),
  );
  return results
    .flat()
    .flatMap((result) =>
      'error' in result && result.error.kind === 'denied'
        ? [{ topic: result.topic, partition: result.partition, code: result.error.code }]
        : [],
    );
}

export function judgeTopics(
  { partitions, troubles }: Pick<PartitionListing, 'partitions' | 'troubles'>,
  patterns: readonly string[],
  denied: readonly Unreadable[],
): Finding {
  const pattern = patterns.join(', ');
  const bad = [...troubles, ...denied];
  if (bad.length > 0) {
    const names = bad.map(
      ({ topic, partition, code }) => `${topic}${partition === undefined ? '' : `/${partition}`} ${code}`,
    );
    const isDenied = bad.some(({ code }) => code.includes('AUTHORIZATION'));
    return problem(
      'topics',
      `not readable: ${shortList(names)}`,
      isDenied
        ? 'give the user the rights to describe and to read these topics'
        : 'see the state of these topics with kafka-topics.sh --describe',
    );
  }
  const counts = Map.groupBy(partitions, ({ topic }) => topic);
  if (counts.size === 0)
    return warning(
      'topics',
      `no topic matches ${pattern}`,
      'correct kafka.dlq_topic_pattern; a topic that the user may not describe is not listed; one that is made later is found by itself',
    );
  const names = [...counts].map(([topic, some]) => `${topic} (${some.length})`);
  return ok('topics', `${counts.size} match ${pattern}, with their partitions: ${shortList(names)}`);
}

function examineGroup(broker: Broker, group: string, partitions: readonly PartitionInfo[]): Promise<Finding> {
  if (partitions.length === 0)
    return Promise.resolve(skipped('group', `${group}: not asked, as there is no topic yet`));
  return attempt('group', async () => {
    try {
      const committed = await broker.committed(group, partitions);
      return ok(
        'group',
        `${group}: ${committed.length} of ${partitions.length} partitions have a committed offset`,
      );
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return problem('group', error.message, `give the user the right to read the group ${group}`);
    }
  });
}

function shortList(names: readonly string[]): string {
  const more = names.length - maxNamed;
  return `${names.slice(0, maxNamed).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
