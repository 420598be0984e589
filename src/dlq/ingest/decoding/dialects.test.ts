import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Header } from '../../../kernel/broker-record.ts';
import { decodeFailure, type Failure } from './decode-failure.ts';
import { dialects } from './dialects.ts';
import { goldenNames, readGoldenRecord } from '../../../../tests/support/golden/golden-record.ts';
import { stripFailureHeaders } from './strip-failure-headers.ts';

const headersOf = (texts: Readonly<Record<string, string>>): Header[] =>
  Object.entries(texts).map(([key, value]) => ({ key: Buffer.from(key), value: Buffer.from(value) }));

const decode = (texts: Readonly<Record<string, string>>): Failure => decodeFailure(headersOf(texts));

const locked = 'customer 4711 is locked';
const bigOffset = 81_985_529_216_486_895n;
const sentAtMs = Date.parse('2026-02-20T10:30:00.123Z');
const dotNet = 'System.InvalidOperationException';
const origin = { originalTopic: 'orders.events.v1', originalPartition: 3, originalOffset: bigOffset };

/** What the golden records mean; those of Spring for Apache Kafka are in `decode-failure.test.ts`. */
const meanings: Readonly<Record<string, Partial<Failure>>> = {
  'kafka-connect-converter': {
    ...origin,
    originalOffset: 42n,
    dialect: 'kafka-connect',
    errorMessage:
      'Unexpected end-of-input within/between Object entries\n at [Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled); line: 1, column: 10]',
    errorClass: 'com.fasterxml.jackson.core.io.JsonEOFException',
    consumerGroup: 'connect-orders-sink',
  },
  'kafka-connect-sink-task': {
    ...origin,
    originalOffset: 43n,
    dialect: 'kafka-connect',
    errorMessage: locked,
    errorClass: 'java.lang.IllegalStateException',
    consumerGroup: 'connect-orders-sink',
  },
  'kafka-streams-deserialization': {
    dialect: 'kafka-streams',
    errorMessage: 'Size of data received by LongDeserializer is not 8',
    errorClass: 'org.apache.kafka.common.errors.SerializationException',
    originalTopic: 'orders.events.v1',
    originalPartition: 0,
    originalOffset: 0n,
  },
  'kafka-streams-processing': {
    dialect: 'kafka-streams',
    errorMessage: locked,
    errorClass: 'java.lang.IllegalStateException',
    originalTopic: 'orders.events.v1',
    originalPartition: 0,
    originalOffset: 1n,
  },
  'spring-cloud-stream': {
    dialect: 'spring-cloud-stream',
    errorMessage: 'balance of 4711 is below 0',
    errorClass: 'java.lang.ArithmeticException',
    originalTopic: 'orders.events.v1',
    originalPartition: 0,
    originalOffset: 0n,
    originalTimestampMs: sentAtMs,
  },
  'share-group-copied-record': {
    ...origin,
    dialect: 'share-group',
    errorMessage: 'Offset delivery count exceeded the threshold.',
    consumerGroup: 'orders-share',
    attempts: 5,
  },
  'share-group-pointer': {
    ...origin,
    dialect: 'share-group',
    errorMessage: 'Offset rejected by client.',
    consumerGroup: 'orders-share',
    attempts: 5,
  },
  masstransit: {
    dialect: 'masstransit',
    errorMessage: locked,
    errorClass: dotNet,
    originalTopic: 'orders.events.v1',
  },
  nservicebus: {
    dialect: 'nservicebus',
    errorMessage: locked,
    errorClass: dotNet,
    originalTopic: 'orders.events.v1',
  },
  'smallrye-dead-letter': {
    ...origin,
    dialect: 'smallrye',
    errorMessage: locked,
    errorClass: 'java.lang.IllegalStateException',
  },
  'smallrye-second-hop': {
    ...origin,
    dialect: 'smallrye',
    errorMessage: 'no handler for type refund',
    errorClass: 'java.lang.IllegalArgumentException',
  },
  'smallrye-delayed-retry': {
    ...origin,
    originalOffset: 42n,
    originalTimestampMs: sentAtMs,
    dialect: 'smallrye',
    errorMessage: locked,
    errorClass: 'java.lang.IllegalStateException',
  },
  karafka: {
    ...origin,
    dialect: 'karafka',
    errorMessage: 'unknown error',
    consumerGroup: 'orders-service',
    attempts: 3,
  },
  'karafka-2.4': {
    ...origin,
    originalOffset: 42n,
    dialect: 'karafka',
    errorMessage: 'unknown error',
    consumerGroup: 'orders-service',
    attempts: 3,
  },
  wolverine: { ...origin, dialect: 'wolverine', errorMessage: locked, errorClass: dotNet, attempts: 3 },
  eventferry: {
    dialect: 'eventferry',
    errorMessage: locked,
    errorClass: 'CustomerLockedError',
    originalTopic: 'orders.events.v1',
    attempts: 3,
  },
  'plain-error.message': { ...origin, originalOffset: 42n, dialect: 'plain', errorMessage: locked },
};

const nothing = Object.fromEntries(Object.keys(decodeFailure([])).map((field) => [field, undefined]));

for (const [name, meaning] of Object.entries(meanings))
  test(`the golden record ${name} is understood`, () => {
    const { errorStack, ...failure } = decodeFailure(readGoldenRecord(name).headers);
    const { errorStack: _, ...expected } = { ...nothing, ...meaning };
    assert.deepEqual(failure, expected);
    const hasNoStack = ['share-group', 'smallrye', 'karafka', 'plain'].includes(failure.dialect);
    assert.equal(errorStack === undefined, hasNoStack);
  });

test('every dialect has a golden record', () => {
  const decoded = new Set(goldenNames.map((name) => decodeFailure(readGoldenRecord(name).headers).dialect));
  assert.deepEqual(
    dialects.map(({ name }) => name).filter((name) => !decoded.has(name)),
    [],
  );
});

test('of every golden record only the headers of the application are left', () => {
  const application = new Set([
    'traceparent',
    'NServiceBus.MessageId',
    'id',
    'message-type',
    'contentType',
    'spring_json_header_types',
  ]);
  for (const name of goldenNames) {
    const { headers } = readGoldenRecord(name);
    assert.deepEqual(
      stripFailureHeaders(headers, decodeFailure(headers).dialect),
      headers.filter(({ key }) => application.has(key.toString())),
      name,
    );
  }
});

test('names that ordinary messages use do not prove a dialect', () => {
  const ordinary = {
    attempts: '3',
    'failed-at': 'x',
    'exception-type': 'checked',
    source_topic: 'elsewhere',
    source_offset: '7',
    'original-offset': '7',
    'MT-Activity-Id': '00-0',
    'NServiceBus.MessageId': '1',
    'dead-letter-policy': 'none',
    'x-original-partition': '3',
    'dlq-policy': 'none',
    source_trace_id: 't',
  };
  const failure = decode(ordinary);
  assert.equal(failure.dialect, 'none');
  assert.deepEqual(stripFailureHeaders(headersOf(ordinary), 'none'), headersOf(ordinary));
});

test("an application's headers named like those of another dialect are kept", () => {
  const application = {
    error: 'E42',
    attempts: '9',
    'exception-type': 'checked',
    source_topic: 'a',
    'dlq-reason': 'r',
    'dead-letter-reason': 's',
  };
  const headers = headersOf({ ...application, '__streams.errors.exception': 'a.B' });
  const failure = decodeFailure(headers);
  assert.deepEqual(
    [failure.dialect, failure.errorMessage, failure.attempts],
    ['kafka-streams', 'a.B', undefined],
  );
  assert.deepEqual(stripFailureHeaders(headers, failure.dialect), headersOf(application));
});

test('hand-written headers with an error are plain, even with the coordinates that Karafka writes', () => {
  const failure = decode({
    original_topic: 'orders.v1',
    original_partition: '3',
    original_offset: '42',
    original_consumer_group: 'g',
    error: locked,
  });
  assert.deepEqual(
    [failure.dialect, failure.errorMessage, failure.originalPartition, failure.originalOffset],
    ['plain', locked, 3, 42n],
  );
});

test('coordinates named x-original may be binary or decimal', () => {
  const texts = { error: 'e', 'x-original-partition': '1234', 'x-original-offset': '12345678' };
  const failure = decode(texts);
  assert.deepEqual([failure.originalPartition, failure.originalOffset], [1234, 12_345_678n]);
  const binary = decodeFailure([
    ...headersOf({ 'x-exception-message': 'e' }),
    { key: Buffer.from('x-original-partition'), value: Buffer.from('00000007', 'hex') },
    { key: Buffer.from('x-original-offset'), value: Buffer.from('000000000000002a', 'hex') },
  ]);
  assert.equal(binary.dialect, 'spring-cloud-stream');
  assert.deepEqual([binary.originalPartition, binary.originalOffset], [7, 42n]);
});

test('decimal numbers that are malformed, negative or beyond a long are ignored', () => {
  for (const number of [
    '',
    ' 7',
    '7 ',
    '+7',
    '0x7',
    '7.0',
    '1e3',
    '-1',
    '９',
    '9223372036854775808',
    '9'.repeat(5000),
  ])
    for (const [partition, offset] of [
      ['__connect.errors.partition', '__connect.errors.offset'],
      ['__dlq.errors.partition', '__dlq.errors.offset'],
    ] as const) {
      const failure = decode({ [partition]: number, [offset]: number });
      assert.deepEqual([failure.originalPartition, failure.originalOffset], [undefined, undefined], number);
    }
  assert.equal(decode({ '__connect.errors.offset': '9223372036854775807' }).originalOffset, 2n ** 63n - 1n);
  assert.equal(decode({ '__connect.errors.partition': '2147483648' }).originalPartition, undefined);
});

test('a class is never combined with the message or the cause of an earlier failure', () => {
  const older = {
    '__connect.errors.exception.class.name': 'a.Old',
    '__connect.errors.exception.message': 'old',
  };
  const newer = { '__connect.errors.exception.class.name': 'a.New' };
  const failure = decodeFailure([...headersOf(older), ...headersOf(newer)]);
  assert.deepEqual([failure.errorClass, failure.errorMessage], ['a.New', 'a.New']);
});

test("a framework's own exception is replaced by the application's, which is kept", () => {
  const stack = [
    'org.apache.kafka.common.errors.SerializationException: m\n\tat a.B.c(B.java:1)',
    'Caused by: java.util.concurrent.ExecutionException: java.lang.Error\n\tat a.B.d(B.java:2)',
    'Caused by: com.acme.OutOfStock: item 4711\n\tat a.B.d(B.java:2)',
    'Caused by: com.acme.Detail: of no interest\n\t... 3 more\n',
  ].join('\n');
  for (const [prefix, wrapper] of [
    ['__connect.errors.exception.', 'org.apache.kafka.connect.errors.ConnectException'],
    ['__streams.errors.exception.', 'org.apache.kafka.streams.errors.StreamsException'],
    ['__streams.errors.exception.', 'org.apache.kafka.common.errors.SerializationException'],
  ] as const) {
    const texts = { [`${prefix}message`]: 'wrapped', [`${prefix}stacktrace`]: stack };
    const wrapped = decode({ [`${prefix}class.name`]: wrapper, ...texts });
    assert.deepEqual([wrapped.errorClass, wrapped.errorMessage], ['com.acme.OutOfStock', 'item 4711']);
    const own = decode({ [`${prefix}class.name`]: 'com.acme.Failure', ...texts });
    assert.deepEqual([own.errorClass, own.errorMessage], ['com.acme.Failure', 'wrapped']);
    const rootless = decode({ [`${prefix}class.name`]: wrapper, [`${prefix}message`]: 'alone' });
    assert.deepEqual([rootless.errorClass, rootless.errorMessage], [wrapper, 'alone']);
  }
});

test('the reason "fault" of MassTransit says less than the class, other reasons are the message', () => {
  assert.equal(decode({ 'MT-Reason': 'fault', 'MT-Fault-ExceptionType': dotNet }).errorMessage, dotNet);
  assert.equal(decode({ 'MT-Reason': 'expired' }).errorMessage, 'expired');
});

test('the topic is read from addresses of Kafka endpoints only', () => {
  const topicOf = (address: string): string | undefined =>
    decode({ 'MT-Reason': 'fault', 'MT-Fault-InputAddress': address }).originalTopic;
  for (const address of [
    'kafka://topic/orders.v1',
    'loopback://localhost/kafka/orders.v1',
    'rabbitmq://broker/vhost/kafka/orders.v1?x=1',
    'topic:orders.v1',
  ])
    assert.equal(topicOf(address), 'orders.v1', address);
  for (const address of [
    'rabbitmq://broker/orders',
    'kafka://topic/',
    'orders.v1',
    'loopback://localhost/a/b/kafka/o',
  ])
    assert.equal(topicOf(address), undefined, address);
});

test('the names of the draft for share groups are read too', () => {
  const failure = decode({
    '_dlq.errors.disposition': 'REJECTED',
    '_dlq.errors.original.topic': 'orders.v1',
    '_dlq.errors.original.partition': '3',
    '_dlq.errors.original.offset': '42',
    '_dlq.errors.group': 'g',
  });
  assert.deepEqual(
    [
      failure.dialect,
      failure.errorMessage,
      failure.originalTopic,
      failure.originalOffset,
      failure.consumerGroup,
    ],
    ['share-group', 'REJECTED', 'orders.v1', 42n, 'g'],
  );
});
