import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BrokerRecord } from '../../kernel/broker-record.ts';
import { createProtection } from '../../kernel/protect/protection.ts';
import type { ProtectRule } from '../../kernel/protect/protect-rule.ts';
import { readSha256, undecodable } from '../domain/dead-letter.ts';
import { recordSha256 } from '../domain/record-sha256.ts';
import { createDecoder } from './decoding/decode-dead-letter.ts';
import { removeAtIngest } from './remove-at-ingest.ts';

const source = { topic: 'orders.dlq', topicId: 'a', partition: 0 };
const decode = createDecoder({ rules: [], isDeadLetterTopic: (topic) => topic.endsWith('.dlq') });

function reading(rule: Partial<ProtectRule>) {
  const whole = {
    names: {},
    fields: [],
    headers: [],
    key: false,
    patterns: [],
    action: 'mask',
    ...rule,
  } as const;
  return removeAtIngest(createProtection({ rules: [whole], patterns: {}, hashKey: null }), decode);
}

const record = (
  value: string | Buffer | null,
  headers: Readonly<Record<string, string>> = {},
): BrokerRecord => ({
  offset: 0n,
  timestamp: 0n,
  key: Buffer.from('k'),
  value: value === null ? null : Buffer.from(value),
  headers: Object.entries(headers).map(([name, text]) => ({
    key: Buffer.from(name),
    value: Buffer.from(text),
  })),
  compression: 'none',
});

test('a record without anything to remove is the same object', () => {
  const one = record('{"a": 1}', { error: 'failed' });
  const letter = reading({ fields: ['password'], patterns: ['email'] })(one, source);
  assert.equal(letter.record, one);
  assert.equal(letter.removed, null);
});

test('a value that cannot be searched is removed as a whole', () => {
  const read = reading({ fields: ['password'] });
  for (const value of [
    'password: x',
    Buffer.from([0xff, 0xfe]),
    '{"password": "x"',
    '{"a": 1} {"password": 2}',
  ]) {
    const { record: stored, isJson, removed } = read(record(value), source);
    assert.equal(stored.value?.toString(), '[masked]');
    assert.deepEqual([isJson, removed?.parts], [false, ['value']]);
  }
});

test('no value, and an empty one, have nothing to remove', () => {
  for (const value of [null, ''])
    assert.equal(reading({ fields: ['password'], patterns: ['email'] })(record(value), source).removed, null);
});

test('the hash is that of the record as it was read', () => {
  const one = record('{"password": "x"}');
  const letter = reading({ fields: ['password'], key: true })(one, source);
  assert.deepEqual(letter.removed?.parts, ['key', 'value']);
  assert.deepEqual(readSha256(letter), recordSha256(one.key, one.value));
});

test('headers that a retry leaves out count as the error', () => {
  const read = reading({ patterns: ['email'] });
  const letter = read(record('{}', { error: 'no user a.b@example.com' }), source);
  assert.deepEqual(letter.removed?.parts, ['error']);
  assert.equal(letter.errorMessage, 'no user [masked]');
  assert.ok(
    !JSON.stringify([
      letter.record.headers.map(({ value }) => String(value)),
      letter.fingerprintBasis,
    ]).includes('a.b@'),
  );
  const other = read(record('{}', { contact: 'a.b@example.com' }), source);
  assert.deepEqual(other.removed?.parts, ['headers']);
});

test('a record whose fields cannot be stored stays removed, and is never whole', () => {
  const letter = reading({ patterns: ['email'] })(record('{}', { error: 'no user a.b@example.com' }), source);
  const stored = undecodable(letter, source.topic, '22P05');
  assert.deepEqual(stored.removed?.parts, ['key', 'value', 'headers', 'error']);
  assert.ok(!stored.record.headers.some(({ value }) => String(value).includes('a.b@')));
});

test('a rule of the original topic or of the dead-letter topic removes', () => {
  for (const [topics, removes] of [
    [['orders.dlq'], true],
    [['orders'], true],
    [['others'], false],
  ] as const) {
    const read = reading({ names: { topics }, fields: ['password'] });
    const letter = read(record('{"password": 1}', { original_topic: 'orders' }), source);
    assert.equal(letter.removed !== null, removes, topics[0]);
  }
});
