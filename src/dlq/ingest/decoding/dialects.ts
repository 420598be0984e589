import { decimal, int32OrDecimal, int64OrDecimal } from './codecs.ts';
import { named, noHeaders, startingWith, type Dialect, type Reading } from './dialect.ts';
import { springCloudStream, springKafka } from './spring-dialects.ts';
import { topicOfKafkaAddress, topicOfQueue } from './topic-of-address.ts';
import { unwrapJavaError } from './unwrap-java-error.ts';

const topic: Reading = { field: 'originalTopic' };
const partition: Reading = { field: 'originalPartition', codec: decimal };
const offset: Reading = { field: 'originalOffset', codec: decimal };
const timestamp: Reading = { field: 'originalTimestampMs', codec: decimal };
const attempts: Reading = { field: 'attempts', codec: decimal };
const group: Reading = { field: 'consumerGroup' };
const message: Reading = { field: 'errorMessage' };
const causeMessage: Reading = { field: 'causeMessage' };
const className: Reading = { field: 'errorClass' };
const causeClass: Reading = { field: 'causeClass' };
const stack: Reading = { field: 'errorStack' };

const asIs: Pick<Dialect, 'newHeaders' | 'unwrap'> = { newHeaders: 'last', unwrap: (error) => error };

/** Sink connectors with `errors.deadletterqueue.context.headers.enable`. Their group is named after the connector. */
const kafkaConnect: Dialect = {
  name: 'kafka-connect',
  evidence: { any: startingWith('__connect.errors.') },
  reads: new Map<string, Reading>([
    ['__connect.errors.topic', topic],
    ['__connect.errors.partition', partition],
    ['__connect.errors.offset', offset],
    ['__connect.errors.connector.name', { field: 'consumerGroup', parse: (name) => `connect-${name}` }],
    ['__connect.errors.exception.class.name', className],
    ['__connect.errors.exception.message', message],
    ['__connect.errors.exception.stacktrace', stack],
  ]),
  failureHeaders: startingWith('__connect.errors.'),
  ownFailureHeaders: noHeaders,
  newHeaders: 'last',
  unwrap: unwrapJavaError('org.apache.kafka.connect.errors.'),
};

/** Kafka Streams since 4.2 (KIP-1034), and the libraries that used its prefix before. */
const kafkaStreams: Dialect = {
  name: 'kafka-streams',
  evidence: { any: startingWith('__streams.errors.') },
  reads: new Map<string, Reading>([
    ['__streams.errors.topic', topic],
    ['__streams.errors.partition', partition],
    ['__streams.errors.offset', offset],
    ['__streams.errors.exception', className],
    ['__streams.errors.message', message],
    ['__streams.errors.stacktrace', stack],
    ['__streams.errors.exception.class.name', className],
    ['__streams.errors.exception.message', message],
    ['__streams.errors.exception.stack_trace', stack],
    ['__streams.errors.exception.stacktrace', stack],
  ]),
  failureHeaders: startingWith('__streams.errors.'),
  ownFailureHeaders: noHeaders,
  newHeaders: 'last',
  unwrap: unwrapJavaError('org.apache.kafka.streams.errors.'),
};

function shareGroupReadings(prefix: string): [string, Reading][] {
  return [
    [`${prefix}topic`, topic],
    [`${prefix}partition`, partition],
    [`${prefix}offset`, offset],
    [`${prefix}group`, group],
    [`${prefix}delivery.count`, attempts],
    [`${prefix}message`, causeMessage],
  ];
}

/** Share groups (KIP-1191), and the names of the draft that follows it (KIP-1317). */
const shareGroup: Dialect = {
  name: 'share-group',
  evidence: { any: startingWith('__dlq.errors.', '_dlq.errors.') },
  reads: new Map<string, Reading>([
    ['_dlq.errors.disposition', message],
    ...shareGroupReadings('__dlq.errors.'),
    ...shareGroupReadings('_dlq.errors.'),
    ...shareGroupReadings('_dlq.errors.original.'),
  ]),
  failureHeaders: startingWith('__dlq.errors.', '_dlq.errors.'),
  ownFailureHeaders: noHeaders,
  ...asIs,
};

/** MassTransit drops every header with its prefix when it sends a message again; some of them are no failure's. */
const massTransit: Dialect = {
  name: 'masstransit',
  evidence: { any: { prefixes: ['MT-Fault-'], names: new Set(['MT-Reason']) } },
  reads: new Map<string, Reading>([
    ['MT-Reason', { field: 'errorMessage', parse: (reason) => (reason === 'fault' ? undefined : reason) }],
    ['MT-Fault-Message', causeMessage],
    ['MT-Fault-ExceptionType', className],
    ['MT-Fault-StackTrace', stack],
    ['MT-Fault-InputAddress', { field: 'originalTopic', parse: topicOfKafkaAddress }],
  ]),
  failureHeaders: { prefixes: ['MT-Fault-'], names: new Set(['MT-Reason']) },
  ownFailureHeaders: startingWith('MT-'),
  ...asIs,
};

/** The headers that its own tool removes before a message goes back to its queue. */
const nServiceBusHeaders = {
  prefixes: ['NServiceBus.ExceptionInfo.'],
  names: new Set([
    'NServiceBus.FailedQ',
    'NServiceBus.TimeOfFailure',
    'NServiceBus.Retries',
    'NServiceBus.Retries.Timestamp',
    'NServiceBus.FLRetries',
  ]),
};

const nServiceBus: Dialect = {
  name: 'nservicebus',
  evidence: { any: { prefixes: ['NServiceBus.ExceptionInfo.'], names: new Set(['NServiceBus.FailedQ']) } },
  reads: new Map<string, Reading>([
    ['NServiceBus.FailedQ', { field: 'originalTopic', parse: topicOfQueue }],
    ['NServiceBus.ExceptionInfo.ExceptionType', className],
    ['NServiceBus.ExceptionInfo.InnerExceptionType', causeClass],
    ['NServiceBus.ExceptionInfo.Message', message],
    ['NServiceBus.ExceptionInfo.StackTrace', stack],
  ]),
  failureHeaders: nServiceBusHeaders,
  ownFailureHeaders: noHeaders,
  ...asIs,
};

function smallRyeReadings(prefix: string): [string, Reading][] {
  return [
    [`${prefix}exception-class-name`, className],
    [`${prefix}reason`, message],
    [`${prefix}cause-class-name`, causeClass],
    [`${prefix}cause`, causeMessage],
    [`${prefix}topic`, topic],
    [`${prefix}partition`, partition],
    [`${prefix}offset`, offset],
  ];
}

const smallRyeReads = new Map<string, Reading>([
  ...smallRyeReadings('dead-letter-'),
  ...smallRyeReadings('delayed-retry-'),
  ['delayed-retry-original-timestamp', timestamp],
]);

/** SmallRye and Quarkus, with the strategies dead-letter queue and delayed retry. They write before what is there. */
const smallRye: Dialect = {
  name: 'smallrye',
  evidence: {
    any: named(
      'dead-letter-exception-class-name',
      'dead-letter-reason',
      'delayed-retry-exception-class-name',
      'delayed-retry-reason',
    ),
  },
  reads: smallRyeReads,
  failureHeaders: noHeaders,
  ownFailureHeaders: {
    prefixes: ['deserialization-failure-'],
    names: new Set([
      ...smallRyeReads.keys(),
      'delayed-retry-count',
      'delayed-retry-first-processing-timestamp',
    ]),
  },
  newHeaders: 'first',
  unwrap: (error) => error,
};

const eventferryReads = new Map<string, Reading>([
  ['dlq-reason', message],
  ['dlq-error-class', className],
  ['dlq-stack', stack],
  ['dlq-error-stack', stack],
  ['dlq-original-topic', topic],
  ['dlq-original-partition', partition],
  ['dlq-original-offset', offset],
  ['dlq-consumer-group', group],
  ['dlq-attempts', attempts],
]);

const eventferry: Dialect = {
  name: 'eventferry',
  evidence: { any: named('dlq-reason', 'dlq-error-class', 'dlq-original-topic') },
  reads: eventferryReads,
  failureHeaders: noHeaders,
  ownFailureHeaders: named(
    ...eventferryReads.keys(),
    'dlq-failed-at',
    'dlq-original-aggregate-id',
    'dlq-original-message-id',
  ),
  ...asIs,
};

/** Names that people choose who write the headers themselves. */
const plainErrors = ['error', 'x-last-error', 'error.message', 'x-failure-reason'] as const;

function karafkaReadings(prefix: string, separator: string): [string, Reading][] {
  return [
    [`${prefix}${separator}topic`, topic],
    [`${prefix}${separator}partition`, partition],
    [`${prefix}${separator}offset`, offset],
    [`${prefix}${separator}consumer${separator}group`, group],
    [`${prefix}${separator}attempts`, attempts],
  ];
}

/** How Karafka names its headers: since 2.5, since 2.0.17, and before. It writes no error. */
const karafkaVersions = [
  karafkaReadings('source', '_'),
  karafkaReadings('original', '_'),
  karafkaReadings('original', '-'),
];

const karafka: Dialect = {
  name: 'karafka',
  evidence: {
    together: karafkaVersions.map((names) => names.slice(0, 4).map(([name]) => name)),
    unless: named(...plainErrors),
  },
  reads: new Map(karafkaVersions.flat()),
  failureHeaders: noHeaders,
  ownFailureHeaders: named(
    ...karafkaVersions.flatMap((names) => names.map(([name]) => name)),
    ...['source', 'original'].flatMap((prefix) => [`${prefix}_key`, `${prefix}_trace_id`]),
  ),
  ...asIs,
};

const wolverineReads = new Map<string, Reading>([
  ['exception-type', className],
  ['exception-message', message],
  ['exception-stack', stack],
  ['original-destination', { field: 'originalTopic', parse: topicOfKafkaAddress }],
  ['original-partition', partition],
  ['original-offset', offset],
  ['attempts', attempts],
]);

const wolverine: Dialect = {
  name: 'wolverine',
  evidence: { together: [['exception-type', 'exception-message', 'failed-at']] },
  reads: wolverineReads,
  failureHeaders: noHeaders,
  ownFailureHeaders: named(...wolverineReads.keys(), 'failed-at'),
  ...asIs,
};

const plainTopics = ['original_topic', 'x-original-topic'] as const;

const plainNumbers: readonly (readonly [string, Reading])[] = [
  ['original_partition', partition],
  ['original_offset', offset],
  ['original_timestamp', timestamp],
  ['x-original-partition', { field: 'originalPartition', codec: int32OrDecimal }],
  ['x-original-offset', { field: 'originalOffset', codec: int64OrDecimal }],
  ['x-original-timestamp', { field: 'originalTimestampMs', codec: int64OrDecimal }],
];

const plain: Dialect = {
  name: 'plain',
  evidence: { any: named(...plainErrors, ...plainTopics) },
  reads: new Map<string, Reading>([
    ...plainErrors.map((name) => [name, message] as const),
    ...plainTopics.map((name) => [name, topic] as const),
    ...plainNumbers,
  ]),
  failureHeaders: named('x-last-error', ...plainTopics),
  ownFailureHeaders: named(...plainErrors, ...plainNumbers.map(([name]) => name)),
  ...asIs,
};

/**
 * The dialects in which producers write dead letters. A record has the first dialect of the table that its headers
 * prove. So a dialect with unmistakable headers comes before one whose names ordinary messages use too, and `plain`
 * comes last.
 */
export const dialects: readonly Dialect[] = [
  kafkaConnect,
  kafkaStreams,
  shareGroup,
  springKafka,
  massTransit,
  nServiceBus,
  smallRye,
  springCloudStream,
  eventferry,
  wolverine,
  karafka,
  plain,
];
