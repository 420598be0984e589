import assert from 'node:assert/strict';
import { test } from 'node:test';

import * as fc from 'fast-check';
import { stringify } from 'yaml';

import { isMap } from '../formats/value.ts';
import { schema } from '../schema.ts';
import type { Problem } from '../config-error.ts';
import { readSettings } from '../read-settings.ts';
import { childPath } from '../key-path.ts';
import { keysIn } from '../schema-keys.ts';
import { mergeLayers, type AllGiven } from './merge-layers.ts';
import { yamlLayer } from './yaml-layer.ts';

/** What a file alone says, and what is wrong with it. */
function read(text: string): Readonly<{ given: AllGiven; problems: readonly Problem[] }> {
  const layer = yamlLayer(text, 'config.yaml');
  const { tree, given } = mergeLayers([layer], schema);
  const problems = [...layer.problems];
  readSettings(tree, given, problems);
  return { given, problems };
}

const entriesIn = (text: string): unknown =>
  [...read(text).given].flatMap(([path, { value, source }]) =>
    isMap(value) ? [] : [{ path, value, source }],
  );

const reasonsIn = (text: string): readonly string[] => read(text).problems.map(({ reason }) => reason);

const suggestions = (text: string): unknown =>
  read(text).problems.map(({ path, suggestion }) => [path, suggestion]);

test('an empty file says nothing', () => {
  for (const text of ['', '# only words\n', '---\n', '{}', 'null', '\uFEFF'])
    assert.deepEqual(read(text), { given: new Map(), problems: [] });
});

test('every value knows the line that it stands in', () => {
  assert.deepEqual(
    entriesIn('server:\n  port: 1\n\nkafka:\n  sasl:\n    username: a\n  brokers:\n    - a:1\n'),
    [
      { path: 'server.port', value: 1, source: 'config.yaml:2' },
      { path: 'kafka.sasl.username', value: 'a', source: 'config.yaml:6' },
      { path: 'kafka.brokers', value: ['a:1'], source: 'config.yaml:7' },
    ],
  );
});

test('what is no YAML is told by line and column, without repeating the text', () => {
  const cases = {
    'server:\n  port: 1\n  port: 2\n': 'line 3, column 3: duplicate key',
    'server: {port: 1\n': 'line 2, column 1: bad indent',
    'a: 1\n---\nb: 2\n': 'line 2, column 1: multiple docs',
    'database:\n\tpassword: hunter2\n': 'line 2, column 1: tab as indent',
    'database: {password: "hunter2}\n': 'line 2, column 1: missing char',
    'database:\n  password: !vault hunter2\n': 'line 2, column 13: tag resolve failed',
    'database:\n  password: hunter2: x\n': 'line 2, column 13: block as implicit key',
    'a: *hunter2\n': 'the file uses an alias too often or without its anchor',
    '? [hunter2]\n: x\n': 'line 1, column 3: non string key',
  };
  for (const [text, reason] of Object.entries(cases)) {
    const reasons = reasonsIn(text);
    assert.equal(reasons[0], reason, text);
    assert(!reasons.join().includes('hunter2'));
  }
});

test('a file that would exhaust the process is refused', () => {
  const bomb = [
    'a0: &a0 [x, x]',
    ...Array.from({ length: 30 }, (_, n) => `a${n + 1}: &a${n + 1} [*a${n}, *a${n}]`),
  ];
  assert.deepEqual(reasonsIn(bomb.join('\n')), ['the file uses an alias too often or without its anchor']);
  assert.deepEqual(reasonsIn(`a: ${'['.repeat(20_000)}`), ['the file is nested too deeply']);
  assert.deepEqual(reasonsIn(`a: ${'['.repeat(20_000)}${']'.repeat(20_000)}`), [
    'the file is nested too deeply',
  ]);
  assert.deepEqual(reasonsIn(`# ${'x'.repeat(2 ** 20)}`), ['the file is larger than 1048576 characters']);
});

test('a file or a section that is no map is told so', () => {
  for (const text of ['[]', 'text', '5'])
    assert.deepEqual(reasonsIn(text), ['the file must be a map of keys']);
  for (const [text, kind] of [
    ['server: 8080', 'a number'],
    ['server: []', 'a list'],
    ['kafka: {sasl: PLAIN}', 'text'],
  ] as const)
    assert.deepEqual(reasonsIn(text), [`must be a map of keys, not ${kind}`]);
});

test('a key in the wrong place is told where it belongs', () => {
  assert.deepEqual(suggestions('max_retries: 3'), [['max_retries', 'dlq.max_retries']]);
  assert.deepEqual(suggestions('kafka: {retention_days: 3}'), [
    ['kafka.retention_days', 'dlq.archive.retention_days'],
  ]);
  assert.deepEqual(suggestions('host: a'), [['host', 'server.host or database.host']]);
  assert.deepEqual(suggestions('colour: red'), [['colour', undefined]]);
});

test('keys that every object has are unknown like any other', () => {
  for (const key of ['__proto__', 'constructor', 'toString', 'hasOwnProperty'])
    assert.deepEqual(
      read(`${key}: {polluted: true}`).problems.map(({ path, reason }) => [path, reason]),
      [[key, 'unknown key']],
    );
  assert.equal(({} as { polluted?: unknown }).polluted, undefined);
});

test('a key of several lines stays in its line of the message', () => {
  assert.equal(read('"a\\nb": 1').problems[0]?.path, '["a\uFFFDb"]');
});

test('values behind aliases are read', () => {
  assert.deepEqual(entriesIn('server: {host: &here "::1"}\ndatabase: {host: *here}'), [
    { path: 'server.host', value: '::1', source: 'config.yaml:1' },
    { path: 'database.host', value: '::1', source: 'config.yaml:2' },
  ]);
});

test('no text makes the reader throw', () => {
  const piece = fc.constantFrom(
    'server',
    ':',
    ' ',
    '\n',
    '  ',
    '- ',
    '[',
    ']',
    '{',
    '}',
    '&a',
    '*a',
    '<<',
    '!',
    '|',
    '"',
    '%',
  );
  fc.assert(
    fc.property(fc.array(fc.oneof(piece, fc.string()), { maxLength: 30 }), (pieces) => {
      read(pieces.join(''));
    }),
    { numRuns: 1000 },
  );
});

test('any slip in any key is told by its path, with the right suggestion', () => {
  const known = keysIn(schema).flatMap(({ keys }) => keys.map((_, index) => keys.slice(0, index + 1)));
  const paths = new Set(known.map(pathOf));
  fc.assert(
    fc.property(fc.constantFrom(...known), slip, (keys, slip) => {
      const typed = [...keys.slice(0, -1), slip(keys.at(-1) ?? '')];
      fc.pre(!paths.has(pathOf(typed)));
      const tree = typed.reduceRight<unknown>((inner, key) => ({ [key]: inner }), 'x');
      const [problem, ...more] = read(stringify(tree)).problems;
      assert.deepEqual([problem?.path, problem?.reason, more], [pathOf(typed), 'unknown key', []]);
      const { suggestion } = problem ?? {};
      assert(suggestion?.split(' or ').includes(pathOf(keys)), `${pathOf(typed)}: ${suggestion}`);
    }),
    { numRuns: 1500 },
  );
});

/** A letter added, left out or replaced, or two swapped. */
const slip = fc
  .record({
    kind: fc.constantFrom('added', 'left out', 'replaced', 'swapped'),
    position: fc.nat(),
    letter: fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz_-0Q'.split('')),
  })
  .map(({ kind, position, letter }) => (key: string): string => {
    const at = position % key.length;
    const [before, here, behind] = [key.slice(0, at), key.slice(at, at + 1), key.slice(at + 1)];
    if (kind === 'added') return before + letter + here + behind;
    if (kind === 'left out') return before + behind;
    return kind === 'replaced'
      ? before + letter + behind
      : before + behind.slice(0, 1) + here + behind.slice(1);
  });

const pathOf = (keys: readonly string[]): string => keys.reduce(childPath, '');
