import { bigInteger, int32, int64, type IntegerCodec } from './codecs.ts';
import type { HeaderError } from './header-error.ts';
import { unwrapSpringError } from './unwrap-spring-error.ts';

/**
 * The dialects in which producers write dead letters. A record has the first dialect of the table that one of its
 * headers proves. So a dialect with unmistakable headers comes before one that shares them, and `plain`, whose names
 * any application might use, comes last.
 */
export type DialectName = 'spring-kafka' | 'plain';

export type TextField =
  | 'errorMessage'
  | 'errorClass'
  | 'causeClass'
  | 'errorStack'
  | 'consumerGroup'
  | 'originalTopic';

export type IntegerField = 'originalPartition' | 'originalOffset' | 'originalTimestampMs' | 'attempts';

/** The field that a header holds. If two names hold the same field, their order in the record decides. */
export type Reading = Readonly<{ field: TextField }> | Readonly<{ field: IntegerField; codec: IntegerCodec }>;

export type Dialect = Readonly<{
  name: DialectName;
  /** Headers that prove the dialect. */
  evidence: HeaderNames;
  reads: ReadonlyMap<string, Reading>;
  /** Failure headers in any record: a republished record never has them. */
  failureHeaders: HeaderNames;
  /** Names that ordinary messages use too: failure headers only in a record of this dialect. */
  ownFailureHeaders: HeaderNames;
  /** Unwraps the error that the producer's framework has wrapped. */
  unwrap: (error: HeaderError) => HeaderError;
}>;

export type HeaderNames = Readonly<{ prefixes: readonly string[]; names: ReadonlySet<string> }>;

export function isAmong(headers: HeaderNames, name: string): boolean {
  return headers.names.has(name) || headers.prefixes.some((prefix) => name.startsWith(prefix));
}

const noHeaders: HeaderNames = { prefixes: [], names: new Set() };

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

const springKafka: Dialect = {
  name: 'spring-kafka',
  evidence: springHeaders,
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
  unwrap: unwrapSpringError,
};

const plain: Dialect = {
  name: 'plain',
  evidence: { prefixes: [], names: new Set(['error', 'x-last-error', 'original_topic', 'x-original-topic']) },
  reads: new Map<string, Reading>([
    ['error', { field: 'errorMessage' }],
    ['x-last-error', { field: 'errorMessage' }],
    ['original_topic', { field: 'originalTopic' }],
    ['x-original-topic', { field: 'originalTopic' }],
  ]),
  failureHeaders: { prefixes: [], names: new Set(['x-last-error', 'original_topic', 'x-original-topic']) },
  ownFailureHeaders: { prefixes: [], names: new Set(['error']) },
  unwrap: (error) => error,
};

export const dialects: readonly Dialect[] = [springKafka, plain];
