import { bigInteger, int32, int32OrDecimal, int64, int64OrDecimal } from './codecs.ts';
import { named, noHeaders, type Dialect, type HeaderNames, type Reading } from './dialect.ts';
import { unwrapJavaError } from './unwrap-java-error.ts';
import { unwrapSpringError } from './unwrap-spring-error.ts';

/**
 * Spring for Apache Kafka: the `DeadLetterPublishingRecoverer` writes `kafka_dlt-…`, `@RetryableTopic` the same
 * names without `dlt-` and its own `retry_topic-…`. `springDeserializerException…` is a serialized Java object, which
 * is never read.
 */
const springHeaders: HeaderNames = {
  prefixes: [
    'kafka_dlt-',
    'kafka_original-',
    'kafka_exception-',
    'kafka_key-exception-',
    'retry_topic-',
    'springDeserializerException',
  ],
  names: new Set(['kafka_deliveryAttempt']),
};

/** Spring writes key failures before value failures, so if both are there, the value's is the last. */
function springReadings(prefix: string): [string, Reading][] {
  return [
    [`${prefix}original-topic`, { field: 'originalTopic' }],
    [`${prefix}original-partition`, { field: 'originalPartition', codec: int32 }],
    [`${prefix}original-offset`, { field: 'originalOffset', codec: int64 }],
    [`${prefix}original-timestamp`, { field: 'originalTimestampMs', codec: int64 }],
    [`${prefix}key-exception-fqcn`, { field: 'errorClass' }],
    [`${prefix}key-exception-message`, { field: 'errorMessage' }],
    [`${prefix}key-exception-stacktrace`, { field: 'errorStack' }],
    [`${prefix}exception-fqcn`, { field: 'errorClass' }],
    [`${prefix}exception-cause-fqcn`, { field: 'causeClass' }],
    [`${prefix}exception-message`, { field: 'errorMessage' }],
    [`${prefix}exception-stacktrace`, { field: 'errorStack' }],
  ];
}

export const springKafka: Dialect = {
  name: 'spring-kafka',
  evidence: { any: springHeaders },
  reads: new Map<string, Reading>([
    ...springReadings('kafka_dlt-'),
    ...springReadings('kafka_'),
    ['kafka_dlt-original-consumer-group', { field: 'consumerGroup' }],
    ['retry_topic-original-timestamp', { field: 'originalTimestampMs', codec: bigInteger }],
    ['retry_topic-attempts', { field: 'attempts', codec: int32 }],
    ['kafka_deliveryAttempt', { field: 'attempts', codec: int32 }],
  ]),
  failureHeaders: springHeaders,
  ownFailureHeaders: noHeaders,
  newHeaders: 'last',
  unwrap: unwrapSpringError,
};

const cloudStreamReads = new Map<string, Reading>([
  ['x-original-topic', { field: 'originalTopic' }],
  ['x-original-partition', { field: 'originalPartition', codec: int32OrDecimal }],
  ['x-original-offset', { field: 'originalOffset', codec: int64OrDecimal }],
  ['x-original-timestamp', { field: 'originalTimestampMs', codec: int64OrDecimal }],
  ['x-exception-fqcn', { field: 'errorClass' }],
  ['x-exception-message', { field: 'errorMessage' }],
  ['x-exception-stacktrace', { field: 'errorStack' }],
]);

/** The Kafka binder of Spring Cloud Stream. Others write `x-original-…` too: only the exception proves the binder. */
export const springCloudStream: Dialect = {
  name: 'spring-cloud-stream',
  evidence: { any: named('x-exception-fqcn', 'x-exception-message', 'x-exception-stacktrace') },
  reads: cloudStreamReads,
  failureHeaders: noHeaders,
  ownFailureHeaders: named(...cloudStreamReads.keys(), 'x-original-timestamp-type'),
  newHeaders: 'last',
  unwrap: unwrapJavaError(
    'org.springframework.messaging.',
    'org.springframework.integration.',
    'org.springframework.kafka.listener.ListenerExecutionFailedException',
  ),
};
