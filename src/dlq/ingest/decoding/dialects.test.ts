import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import type { Header } from '../../../kernel/broker-record.ts';
import { decodeFailure, type Failure } from './decode-failure.ts';
import { isAmong } from './dialect.ts';
import { dialects } from './dialects.ts';
import { goldenNames, readGoldenRecord } from '../../../../tests/support/golden/golden-record.ts';
import { stripFailureHeaders } from './strip-failure-headers.ts';

const headersOf = (texts: Readonly<Record<string, string | null>>): Header[] =>
  Object.entries(texts).map(([key, value]) => ({
    key: Buffer.from(key),
    value: value === null ? null : Buffer.from(value),
  }));

const decode = (texts: Readonly<Record<string, string | null>>): Failure => decodeFailure(headersOf(texts));

const locked = 'customer 4711 is locked';
const bigOffset = 81_985_529_216_486_895n;
const sentAtMs = Date.parse('2026-02-20T10:30:00.123Z');
const dotNet = 'System.InvalidOperationException';
const origin = { originalTopic: 'orders.events.v1', originalPartition: 3, originalOffset: bigOffset };

/** What the golden records mean; those of Spring for Apache Kafka are in `decode-failure.test.ts`. */
const meanings: Readonly<Record<string, Partial<Failure>>> = {
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
    const hasStack = ['masstransit', 'nservicebus', 'wolverine', 'eventferry'].includes(failure.dialect);
    assert.equal(errorStack !== undefined, hasStack);
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

test("a framework's own exception is replaced by its root cause, an application's is not", () => {
  const stack = `E: m\n\tat a.B.c(B.java:1)\nCaused by: com.acme.OutOfStock: item 4711\n\tat a.B.d(B.java:2)\n`;
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

/** Names of every dialect, names that begin like theirs, and names of applications. */
const anyName = fc.constantFrom(
  ...dialects.flatMap(({ reads, failureHeaders, ownFailureHeaders, evidence }) => [
    ...reads.keys(),
    ...[failureHeaders, ownFailureHeaders].flatMap(({ prefixes, names }) => [
      ...prefixes.map((prefix) => `${prefix}x`),
      ...names,
    ]),
    ...(evidence.together ?? []).flat(),
  ]),
  'traceparent',
  'errors',
  '',
);

const anyHeader: fc.Arbitrary<Header> = fc.record({
  key: anyName.map((name) => Buffer.from(name)),
  value: fc.oneof(
    fc.constant(null),
    fc.uint8Array({ maxLength: 24 }).map((array) => Buffer.from(array)),
    fc.stringMatching(/^-?\d{0,25}$/).map((digits) => Buffer.from(digits)),
    fc
      .array(
        fc.constantFrom(
          'kafka://topic/',
          'a.B',
          ': ',
          '\nCaused by: ',
          '\n\tat ',
          '\0',
          'org.apache.kafka.connect.errors.X',
        ),
      )
      .map((parts) => Buffer.from(parts.join(''))),
  ),
});

test('whatever the headers contain, decoding does not throw and its result can be stored', () => {
  fc.assert(
    fc.property(fc.array(anyHeader, { maxLength: 20 }), (headers) => {
      const failure = decodeFailure(headers);
      assert.notEqual(failure.errorMessage.trim(), '');
      for (const value of Object.values(failure)) {
        if (typeof value === 'string') assert.ok(value.isWellFormed() && !value.includes('\0'));
        if (typeof value === 'number') assert.ok(Number.isInteger(value) && value >= 0);
        if (typeof value === 'bigint') assert.ok(value >= 0n && value < 2n ** 63n);
      }
      assert.ok((failure.originalPartition ?? 0) < 2 ** 31);
    }),
    { numRuns: 3000 },
  );
});

test('a republished record has no failure header of its dialect, and every header that is none', () => {
  fc.assert(
    fc.property(fc.array(anyHeader, { maxLength: 20 }), (headers) => {
      const { dialect } = decodeFailure(headers);
      const isFailureHeader = (name: string): boolean =>
        dialects.some(
          (known) =>
            isAmong(known.failureHeaders, name) ||
            (known.name === dialect && (isAmong(known.ownFailureHeaders, name) || known.reads.has(name))),
        );
      assert.deepEqual(
        stripFailureHeaders(headers, dialect),
        headers.filter(({ key }) => !isFailureHeader(key.toString('latin1'))),
      );
    }),
    { numRuns: 3000 },
  );
});

test('a record without its failure headers proves its dialect no longer', () => {
  fc.assert(
    fc.property(fc.array(anyHeader, { maxLength: 20 }), (headers) => {
      const { dialect } = decodeFailure(headers);
      const rest = decodeFailure(stripFailureHeaders(headers, dialect));
      assert.ok(dialect === 'none' || rest.dialect !== dialect);
    }),
    { numRuns: 1000 },
  );
});

test('the time to decode grows linearly with headers and their size', () => {
  const longest = (times: number): Header[] =>
    dialects.flatMap(({ reads }) =>
      [...reads.keys()].flatMap((name) =>
        headersOf({ [name]: 'a.B: nested exception is \nCaused by: '.repeat(times) }),
      ),
    );
  for (const headers of [longest(20_000), Array.from({ length: 200 }, () => longest(1)).flat()])
    assert.equal(decodeFailure(headers).dialect, 'kafka-connect');
  for (const { evidence, reads } of dialects) {
    const proof = headersOf(Object.fromEntries((evidence.together?.[0] ?? []).map((name) => [name, '1'])));
    const huge = [...reads.keys()].flatMap((name) => headersOf({ [name]: '1a.'.repeat(300_000) }));
    assert.notEqual(decodeFailure([...proof, ...huge]).dialect, 'none');
  }
});
