import { loggerFor } from '../../compose.ts';
import { createBroker } from '../../compose/create-broker.ts';
import { openDatabase } from '../../compose/open-database.ts';
import type { Config } from '../../config/config.ts';
import { AppError, messageOf } from '../../kernel/errors.ts';
import { compileGlobs } from '../../kernel/glob/match-glob.ts';
import type { Broker, PartitionInfo, PartitionListing } from '../../platform/broker/port.ts';
import { examinePublishRights } from './checks/publish-rights.ts';
import { examineTopicIds } from './checks/topic-ids.ts';
import { attempt, ok, problem, skipped, warning, type Finding } from './finding.ts';

const maxNamed = 20;
/** The records are not used; only the error code matters. */
const peek = { maxWaitMs: 1, maxBytes: 1024, maxBytesPerPartition: 1024 } as const;

/** Checks Kafka in the same way as the reader uses it. Publishes nothing, commits nothing, creates no topic. */
export async function* examineBroker(config: Config): AsyncGenerator<Finding> {
  const { kafka, dlq, app } = config;
  if (!kafka.enabled) {
    yield skipped(
      'kafka',
      'disabled: no dead letters are read, and a retry resolves its message without publishing it; set kafka.brokers to enable it',
    );
    return;
  }
  if (kafka.local) {
    yield skipped('kafka', 'the local broker runs inside the server process and cannot be checked from here');
    return;
  }
  const brokers = kafka.brokers.join(', ');
  let broker: Broker | null = null;
  try {
    broker = createBroker(kafka);
    if (broker === null) return;
    const matches = compileGlobs(kafka.dlqTopicPattern);
    const named = kafka.dlqTopicPattern.filter((pattern) => !/[*?]/.test(pattern));
    const listing = await broker.partitions(matches, undefined, named);
    yield ok('kafka', `${brokers}: cluster ${listing.clusterId}`);
    yield judgeTopics(listing, kafka.dlqTopicPattern, await unreadable(broker, listing.partitions));
    yield judgeTargets(dlq.allowedTargets, app.environment);
    yield await examineGroup(broker, kafka.consumerGroup, listing.partitions);
    yield await attempt('topic_ids', () => compareTopicIds(config, listing));
    const connected = broker;
    yield await attempt('publishing', () => examinePublishRights(connected, config));
  } catch (error) {
    yield brokerTrouble(brokers, error);
  } finally {
    await broker?.close();
  }
}

async function compareTopicIds(
  config: Config,
  { clusterId, partitions }: PartitionListing,
): Promise<Finding> {
  if (config.database.mode === 'embedded')
    return skipped('topic_ids', 'not checked: no database is configured');
  const { db } = await openDatabase(config, loggerFor(config));
  try {
    return await examineTopicIds(db, clusterId, partitions);
  } finally {
    await db.end();
  }
}

function brokerTrouble(brokers: string, error: unknown): Finding {
  const advice: Readonly<Record<string, string>> = {
    SYS_BROKER_AUTHENTICATION_FAILED:
      'correct kafka.sasl.username, kafka.sasl.password or kafka.sasl.mechanism',
    SYS_BROKER_TLS_FAILED:
      'set kafka.tls.ca to the file with the CA certificate, and check kafka.security_protocol',
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

/** Listing needs DESCRIBE permission, reading needs READ: fetches from the end of each partition to check it. */
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
        ? 'give the user permission to DESCRIBE and READ these topics'
        : 'check these topics with kafka-topics.sh --describe',
    );
  }
  const counts = Map.groupBy(partitions, ({ topic }) => topic);
  if (counts.size === 0)
    return warning(
      'topics',
      `no topic matches ${pattern}`,
      'correct kafka.dlq_topic_pattern, or give the user DESCRIBE permission; topics created later are found automatically',
    );
  const names = [...counts].map(([topic, some]) => `${topic} (${some.length})`);
  return ok('topics', `${counts.size} match ${pattern} (partitions): ${shortList(names)}`);
}

/** Any producer of a dead letter can name any topic in its headers. */
export function judgeTargets(allowed: readonly string[] | undefined, environment: string): Finding {
  if (allowed !== undefined) return ok('targets', `retries are published only to ${allowed.join(', ')}`);
  const open = 'dlq.allowed_targets is not set: a retry is published to any topic that a record names';
  return /^prod/i.test(environment)
    ? warning('targets', open, 'list the allowed topics in dlq.allowed_targets')
    : ok('targets', open);
}

function examineGroup(broker: Broker, group: string, partitions: readonly PartitionInfo[]): Promise<Finding> {
  if (partitions.length === 0)
    return Promise.resolve(skipped('group', `${group}: not checked, because there are no topics`));
  return attempt('group', async () => {
    try {
      const committed = await broker.committed(group, partitions);
      return ok(
        'group',
        `${group}: ${committed.length} of ${partitions.length} partitions have a committed offset`,
      );
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return problem('group', error.message, `give the user READ permission on the group ${group}`);
    }
  });
}

function shortList(names: readonly string[]): string {
  const more = names.length - maxNamed;
  return `${names.slice(0, maxNamed).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
