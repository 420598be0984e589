import assert from 'node:assert/strict';
import { test } from 'node:test';

import * as fc from 'fast-check';

import { cronSchedule } from './cron-format.ts';
import { duration, flag, listOf, oneOf, text, wholeNumber } from './value.ts';
import type { StaticDecode, TSchema } from 'typebox';
import { fromText } from '../from-text.ts';
import type { InCode } from '../in-code.ts';
import { parseValue } from '../../../tests/support/parse-value.ts';
import { keysIn } from '../schema-keys.ts';
import { host, hostAndPort, isLoopback, webUrl } from './host-format.ts';
import { schema } from '../schema.ts';
import { originalTopicRule, topicGlob } from './topic-format.ts';

function valueOf<T extends TSchema>(format: T, value: unknown): InCode<StaticDecode<T>> {
  const parsed = parseValue(format, value);
  assert(parsed.ok, JSON.stringify({ value, parsed }));
  return parsed.value;
}

function reasonsAgainst(format: TSchema, value: unknown): readonly string[] {
  const parsed = parseValue(format, value);
  assert(!parsed.ok, JSON.stringify({ value, parsed }));
  return parsed.issues.map(({ at, reason }) => `${at}: ${reason}`);
}

const acceptsAll = (format: TSchema, values: readonly unknown[]): void =>
  values.forEach((value) => valueOf(format, value));

const rejectsAll = (format: TSchema, values: readonly unknown[]): void =>
  values.forEach((value) => reasonsAgainst(format, value));

test('a number where text belongs is told to stand in quotes', () => {
  assert.deepEqual(reasonsAgainst(text(), 123), [': must be text, not a number: put it in quotes']);
  rejectsAll(text(), [null, [], {}, 'a\0b', 'a\nb', 'x'.repeat(5000)]);
});

test('a duration without its unit is told so', () => {
  for (const value of [5000, '5000', 1.5, -1]) {
    const [reason] = reasonsAgainst(duration('1s', '1h'), value);
    assert.match(reason ?? '', /a duration from 1s to 1h, and its unit is missing/);
  }
  assert.equal(valueOf(duration('1s', '1h'), '1m30s'), 90_000);
  rejectsAll(duration('1s', '1h'), ['999ms', '1h1ms', 'soon', true, ['5m']]);
});

test('whole numbers keep their bounds', () => {
  const port = wholeNumber(0, 65_535);
  acceptsAll(port, [0, 65_535, fromText(port, '8080')]);
  rejectsAll(port, [-1, 65_536, 1.5, NaN, Infinity, '8080', fromText(port, '0x1f'), fromText(port, '1e3')]);
  rejectsAll(port, [fromText(port, ' 1'), fromText(port, '9'.repeat(40)), null, true, [8080]]);
});

test('a switch in the environment is true, false, 1 or 0', () => {
  for (const [word, value] of Object.entries({ true: true, TRUE: true, 1: true, false: false, 0: false }))
    assert.equal(valueOf(flag(), fromText(flag(), word)), value);
  for (const word of ['yes', 'constructor', '__proto__', '2']) rejectsAll(flag(), [fromText(flag(), word)]);
});

test('a word of a closed set may be written in capitals', () => {
  const format = oneOf(['SCRAM-SHA-512', 'PLAIN']);
  assert.equal(valueOf(format, 'scram-sha-512'), 'SCRAM-SHA-512');
  assert.deepEqual(parseValue(format, 'plan'), {
    ok: false,
    issues: [{ at: '', reason: 'must be one of SCRAM-SHA-512, PLAIN', suggestion: 'PLAIN' }],
    rest: undefined,
  });
});

test('a list names the item that is wrong', () => {
  assert.deepEqual(reasonsAgainst(listOf(wholeNumber(0, 9)), [1, 'two', 3, 40]), [
    '[1]: must be a whole number from 0 to 9, not text',
    '[3]: must be a whole number from 0 to 9',
  ]);
  rejectsAll(listOf(text(), { minItems: 1 }), [[], 'a', {}, Array.from({ length: 1001 }, () => 'a')]);
});

test('a list in the environment is separated by commas, or JSON', () => {
  const format = listOf(text());
  assert.deepEqual(fromText(format, ' a, b ,,c'), ['a', 'b', 'c']);
  assert.deepEqual(fromText(format, '["a", "b,c"]'), ['a', 'b,c']);
  rejectsAll(format, [fromText(format, '["a"')]);
});

test('hosts are names or addresses', () => {
  acceptsAll(host(), ['localhost', '0.0.0.0', '::', 'db_1.example.com', 'a', 'example.com.']);
  rejectsAll(host(), ['', 'a b', '[::1]', 'http://a', 'a:80', '-a', 'x'.repeat(254)]);
  acceptsAll(hostAndPort(), ['kafka-0:9092', '10.0.0.1:1', '[::1]:65535']);
  rejectsAll(hostAndPort(), [
    'kafka',
    'kafka:',
    ':9092',
    'kafka:0',
    'kafka:65536',
    '::1:9092',
    'user@kafka:9092',
  ]);
  acceptsAll(webUrl(), ['http://127.0.0.1:4318', 'https://otel.example.com/v1']);
  rejectsAll(webUrl(), ['127.0.0.1:4318', 'file:///etc/passwd', 'http://']);
});

test('loopback is what only this machine reaches', () => {
  for (const name of ['127.0.0.1', '127.8.9.10', '::1', 'localhost', 'LOCALHOST', '::ffff:127.0.0.1'])
    assert(isLoopback(name), name);
  for (const name of [
    '0.0.0.0',
    '::',
    '10.0.0.1',
    '128.0.0.1',
    'localhost.example.com',
    '127.0.0.1.example.com',
  ])
    assert(!isLoopback(name), name);
});

test('a topic pattern that would read every topic is refused', () => {
  acceptsAll(topicGlob(), ['*.dlq.v1', 'dlq-*', 'orders.dlq', '*-*']);
  rejectsAll(topicGlob(), ['*', '**', '*.*', '', 'a b', 'dlq/*', 'x'.repeat(250)]);
});

test('a rule for the original topic uses only what its pattern catches', () => {
  acceptsAll(originalTopicRule(), [
    { match: '*.failed', topic: '*' },
    { match: 'legacy-dead', topic: 'orders.v1' },
    { match: '*.dlq.*', topic: '*.*' },
  ]);
  assert.deepEqual(reasonsAgainst(originalTopicRule(), { match: 'dead', topic: '*' }), [
    ': topic has more * than match catches',
  ]);
  assert.deepEqual(reasonsAgainst(originalTopicRule(), { mtach: 'dead', topic: '__offsets' }), [
    '.mtach: unknown key',
    '.match: is missing',
    '.topic: must be a topic name; * stands for what the * of match caught',
  ]);
});

test('a schedule has five fields and comes some day', () => {
  acceptsAll(cronSchedule(), ['0 2 * * *', '*/5 * * * MON-FRI', '0 0 29 2 *']);
  rejectsAll(cronSchedule(), ['', '0 2 * *', '0 0 2 * * *', '60 * * * *', '0 0 30 2 *', 'often', '@daily']);
});

test('no format throws, whatever it is given', () => {
  const formats = keysIn(schema).map(({ node }) => node);
  fc.assert(
    fc.property(
      fc.constantFrom(...formats),
      fc.anything({ withNullPrototype: true }),
      fc.string(),
      (format, value, word) => {
        parseValue(format, value);
        parseValue(format, fromText(format, word));
      },
    ),
    { numRuns: 2000 },
  );
});
