import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import type { Header } from '../../../kernel/broker-record.ts';
import { decodeFailure, type Failure } from './decode-failure.ts';
import { readGoldenRecord } from '../../../../tests/support/golden/golden-record.ts';

const header = (key: string, value: string | Buffer | null): Header => ({
  key: Buffer.from(key),
  value: typeof value === 'string' ? Buffer.from(value) : value,
});

const decodeGolden = (name: string): Failure => decodeFailure(readGoldenRecord(name).headers);

const int64Bytes = (value: bigint): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(value);
  return bytes;
};

test('a dead letter of Spring Kafka 3 has its unwrapped cause and its origin', () => {
  const { errorStack, ...failure } = decodeGolden('spring-kafka-3-dead-letter');
  assert.deepEqual(failure, {
    dialect: 'spring-kafka',
    errorMessage: 'could not store order 7c9e6679-7425-40de-944b-e07fc1f90ae7',
    errorClass: 'java.lang.RuntimeException',
    consumerGroup: 'orders-service',
    originalTopic: 'orders.events.v1',
    originalPartition: 3,
    originalOffset: 81_985_529_216_486_895n,
    originalTimestampMs: Date.parse('2026-02-20T10:30:00.123Z'),
    attempts: undefined,
  });
  assert.match(
    errorStack ?? '',
    /^org\.springframework\.kafka\.listener\.ListenerExecutionFailedException: Listener/,
  );
  assert.match(errorStack ?? '', /\n\tat com\.acme\.orders\.OrdersService\.store\(OrdersService\.java:4\)\n/);
});

test('a dead letter of Spring Kafka 2, which nests its messages, has the same', () => {
  const { errorStack: oldStack, ...old } = decodeGolden('spring-kafka-2-dead-letter');
  const { errorStack: newStack, ...recent } = decodeGolden('spring-kafka-3-dead-letter');
  assert.deepEqual(old, recent);
  assert.notEqual(oldStack, newStack);
});

test('if a dead letter failed again, the first hop has the origin and the last one the error', () => {
  const failure = decodeGolden('spring-kafka-3-second-hop');
  assert.equal(failure.originalTopic, 'orders.events.v1');
  assert.equal(failure.originalOffset, 81_985_529_216_486_895n);
  assert.equal(failure.consumerGroup, 'orders-service');
  assert.equal(failure.errorMessage, 'no handler for type refund');
  assert.equal(failure.errorClass, 'java.lang.IllegalArgumentException');
});

test('a dead letter of @RetryableTopic has the main topic and the number of attempts', () => {
  const { errorStack, ...failure } = decodeGolden('spring-kafka-3-retryable-topic');
  assert.deepEqual(failure, {
    dialect: 'spring-kafka',
    errorMessage: 'could not store order 7c9e6679-7425-40de-944b-e07fc1f90ae7',
    errorClass: 'java.lang.RuntimeException',
    consumerGroup: 'orders-service',
    originalTopic: 'orders.events.v1',
    originalPartition: 1,
    originalOffset: 42n,
    originalTimestampMs: Date.parse('2026-02-20T10:30:00.123Z'),
    attempts: 3,
  });
  assert.match(errorStack ?? '', /Caused by: java\.lang\.IllegalStateException: customer 4711 is locked/);
});

test('for a value that Spring could not deserialize the cause comes from the end of the stack', () => {
  const failure = decodeGolden('spring-kafka-3-deserialization');
  assert.equal(failure.errorMessage, "Unexpected token 'o' at position 1");
  assert.equal(failure.errorClass, 'java.lang.IllegalArgumentException');
});

test('a key that Spring could not deserialize has headers of its own', () => {
  const failure = decodeGolden('spring-kafka-2-key-deserialization');
  assert.equal(failure.errorMessage, 'Invalid UUID string: k');
  assert.equal(failure.errorClass, 'java.lang.IllegalArgumentException');
  assert.match(
    failure.errorStack ?? '',
    /^org\.springframework\.kafka\.support\.serializer\.Deserialization/,
  );
});

test('plain headers have the error and the topic', () => {
  const failure = decodeGolden('plain');
  assert.equal(failure.dialect, 'plain');
  assert.equal(failure.errorMessage, 'customer 4711 is locked');
  assert.equal(failure.originalTopic, 'orders.events.v1');
  assert.equal(failure.errorClass, undefined);
});

test('the other plain names have the same', () => {
  const failure = decodeGolden('plain-x-headers');
  assert.equal(failure.dialect, 'plain');
  assert.equal(failure.errorMessage, '在庫がありません: 商品 4711');
  assert.equal(failure.originalTopic, 'orders.events.v1');
});

test('a record without known headers has an unknown error', () => {
  for (const headers of [[], [header('content-type', 'text/plain')], [header('ERROR', 'x')]]) {
    const failure = decodeFailure(headers);
    assert.equal(failure.dialect, 'none');
    assert.equal(failure.errorMessage, 'unknown error');
    assert.equal(failure.originalTopic, undefined);
  }
});

test('Spring headers win over plain ones, in any order', () => {
  const failure = decodeFailure([
    header('error', 'application header'),
    header('x-original-topic', 'elsewhere'),
    header('kafka_dlt-exception-message', 'boom'),
  ]);
  assert.equal(failure.dialect, 'spring-kafka');
  assert.equal(failure.errorMessage, 'boom');
  assert.equal(failure.originalTopic, undefined);
});

test('empty, blank and null values are ignored', () => {
  for (const value of [null, '', ' \n']) {
    const failure = decodeFailure([header('error', value), header('original_topic', value)]);
    assert.equal(failure.dialect, 'plain');
    assert.equal(failure.errorMessage, 'unknown error');
    assert.equal(failure.originalTopic, undefined);
  }
});

test('an exception without a message has its class as the message', () => {
  const failure = decodeFailure([header('kafka_dlt-exception-fqcn', 'java.lang.NullPointerException')]);
  assert.equal(failure.errorMessage, 'java.lang.NullPointerException');
  assert.equal(failure.errorClass, 'java.lang.NullPointerException');
});

test('numbers of the wrong length, and those that mean "none", are ignored', () => {
  const failure = decodeFailure([
    header('kafka_dlt-original-partition', '3'),
    header('kafka_dlt-original-offset', int64Bytes(-1n)),
    header('kafka_dlt-original-timestamp', int64Bytes(2n ** 62n)),
    header('retry_topic-attempts', Buffer.alloc(8)),
  ]);
  assert.equal(failure.originalPartition, undefined);
  assert.equal(failure.originalOffset, undefined);
  assert.equal(failure.originalTimestampMs, undefined);
  assert.equal(failure.attempts, undefined);
});

test('a malformed first hop is not completed from a later one', () => {
  const failure = decodeFailure([
    header('kafka_dlt-original-offset', 'not a number'),
    header('kafka_dlt-original-offset', int64Bytes(7n)),
  ]);
  assert.equal(failure.originalOffset, undefined);
});

test('derived texts have a maximum length', () => {
  const long = 'x'.repeat(100_000);
  const failure = decodeFailure([
    header('kafka_dlt-exception-message', long),
    header('kafka_dlt-exception-stacktrace', long),
    header('kafka_dlt-exception-cause-fqcn', long),
    header('kafka_dlt-original-consumer-group', long),
    header('kafka_dlt-original-topic', long),
  ]);
  assert.equal(failure.errorMessage.length, 16 * 1024);
  assert.equal(failure.errorStack?.length, 64 * 1024);
  assert.equal(failure.errorClass?.length, 1024);
  assert.equal(failure.consumerGroup?.length, 1024);
  assert.equal(failure.originalTopic?.length, 1024);
});

test('never throws, and its texts can be stored, whatever the headers contain', () => {
  const plainNames = 'error x-last-error original_topic x-original-topic kafka_ unrelated';
  const origins =
    'original-topic original-partition original-offset original-timestamp original-consumer-group';
  const errors =
    'exception-message exception-stacktrace exception-fqcn exception-cause-fqcn key-exception-message';
  const springNames = `${origins} ${errors}`
    .split(' ')
    .flatMap((name) => [`kafka_dlt-${name}`, `kafka_${name}`]);
  const names = [
    ...plainNames.split(' '),
    ...springNames,
    'retry_topic-attempts',
    'retry_topic-original-timestamp',
  ];
  const phrases = [
    'nested exception is ',
    'Caused by: ',
    '\nCaused by: ',
    'a.B',
    ': ',
    '\0',
    'Listener failed; ',
    '\n\tat ',
  ];
  const anyValue = fc.oneof(
    fc.constant(null),
    fc.uint8Array({ maxLength: 40 }).map((array) => Buffer.from(array)),
    fc.array(fc.constantFrom(...phrases)).map((parts) => Buffer.from(parts.join(''))),
  );
  const anyHeader = fc.record({
    key: fc.constantFrom(...names).map((name) => Buffer.from(name)),
    value: anyValue,
  });
  fc.assert(
    fc.property(fc.array(anyHeader, { maxLength: 12 }), (headers) => {
      const failure = decodeFailure(headers);
      assert.notEqual(failure.errorMessage.trim(), '');
      for (const value of Object.values(failure)) {
        if (typeof value === 'string') assert.ok(value.isWellFormed() && !value.includes('\0'));
        if (typeof value === 'number' || typeof value === 'bigint') assert.ok(value >= 0);
      }
    }),
    { numRuns: 2000 },
  );
});
