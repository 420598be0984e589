import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import type { Header } from '../../../kernel/broker-record.ts';
import { readGoldenRecord } from '../../../../tests/support/golden/golden-record.ts';
import { stripFailureHeaders } from './strip-failure-headers.ts';

const header = (key: string, value: string | null = 'x'): Header => ({
  key: Buffer.from(key),
  value: value === null ? null : Buffer.from(value),
});

const namesOf = (headers: readonly Header[]): string[] => headers.map(({ key }) => key.toString());

test('our own headers of an earlier republish are removed', () => {
  const headers = [
    header('redrive-message-id'),
    header('a'),
    header('redrive-attempt'),
    header('redrive-original-timestamp'),
  ];
  assert.deepEqual(namesOf(stripFailureHeaders(headers, 'none')), ['a']);
});

test('an "error" header is removed only from records of the plain dialect', () => {
  const headers = [header('error'), header('kafka_dlt-exception-message')];
  assert.deepEqual(namesOf(stripFailureHeaders(headers, 'spring-kafka')), ['error']);
  assert.deepEqual(namesOf(stripFailureHeaders([header('error')], 'plain')), []);
});

test('failure headers of another dialect than the record’s are removed too', () => {
  const headers = [
    header('x-original-topic'),
    header('kafka_exception-fqcn'),
    header('retry_topic-attempts'),
  ];
  assert.deepEqual(stripFailureHeaders(headers, 'none'), []);
});

test('names that only look alike are kept', () => {
  const names = [
    'kafka_dlt',
    'Kafka_dlt-original-topic',
    'kafka_messageKey',
    'redrive-',
    'errors',
    'x-original-topics',
    '',
  ];
  assert.deepEqual(
    namesOf(
      stripFailureHeaders(
        names.map((name) => header(name)),
        'plain',
      ),
    ),
    names,
  );
});

test('kept headers stay in order and byte for byte, with duplicates, nulls and names that are not UTF-8', () => {
  const bytes: fc.Arbitrary<Buffer> = fc.uint8Array({ maxLength: 12 }).map((array) => Buffer.from(array));
  const anyHeader = fc.record({ key: bytes, value: fc.option(bytes) });
  fc.assert(
    fc.property(fc.array(anyHeader), fc.nat(), (headers, place) => {
      const at = headers.length === 0 ? 0 : place % headers.length;
      const kept = headers.filter(({ key }) => key.toString('latin1') !== 'error');
      const dead = headers.toSpliced(at, 0, header('kafka_dlt-original-topic'), header('error', null));
      assert.deepEqual(stripFailureHeaders(dead, 'plain'), kept);
    }),
  );
});

test('stripping is idempotent', () => {
  const { headers } = readGoldenRecord('spring-kafka-3-second-hop');
  const once = stripFailureHeaders(headers, 'spring-kafka');
  assert.deepEqual(stripFailureHeaders(once, 'spring-kafka'), once);
});
