import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeFailure } from '../../src/dlq/ingest/decoding/decode-failure.ts';
import { JavaError } from './collect-payment.ts';
import { attemptOf, plainDeadLetter, springDeadLetter, type Failed } from './dead-letter.ts';

const bytes = (text: string): Buffer => Buffer.from(text);

const failed: Failed = {
  topic: 'payments.v1',
  partition: 2,
  record: {
    offset: 4711n,
    timestamp: 1_772_000_000_000n,
    key: bytes('customer-7'),
    value: Buffer.from([0x82, 0xa8, 0x00]),
    compression: 'none',
    headers: [{ key: bytes('redrive-attempt'), value: bytes('2') }],
  },
  error: new JavaError('com.example.payments.CardDeclinedException', 'card ending in 4242 was declined'),
};

test('a dead letter keeps the key, the value and the headers of its record', () => {
  for (const deadLetter of [plainDeadLetter, springDeadLetter]) {
    const { topic, key, value, headers } = deadLetter('payments.dlq', failed);
    assert.equal(topic, 'payments.dlq');
    assert.deepEqual([key, value], [failed.record.key, failed.record.value]);
    assert.deepEqual(headers.slice(0, 1), failed.record.headers);
  }
});

test('Redrive reads why and where a plain dead letter failed', () => {
  const read = decodeFailure(plainDeadLetter('payments.dlq', failed).headers);
  assert.equal(read.dialect, 'plain');
  assert.equal(read.errorMessage, 'Error: card ending in 4242 was declined');
  assert.equal(read.originalTopic, 'payments.v1');
});

test('Redrive reads the binary numbers and the cause of a Spring dead letter', () => {
  const read = decodeFailure(springDeadLetter('payments.dlq', failed).headers);
  assert.equal(read.dialect, 'spring-kafka');
  assert.equal(read.errorMessage, 'card ending in 4242 was declined');
  assert.equal(read.errorClass, 'com.example.payments.CardDeclinedException');
  assert.equal(read.consumerGroup, 'payments-service');
  assert.deepEqual(
    [read.originalTopic, read.originalPartition, read.originalOffset, read.originalTimestampMs],
    ['payments.v1', 2, 4711n, 1_772_000_000_000],
  );
});

test('a record from its producer is attempt 0, a retried one says which it is', () => {
  assert.equal(attemptOf({ ...failed.record, headers: [] }), 0);
  assert.equal(attemptOf(failed.record), 2);
});
