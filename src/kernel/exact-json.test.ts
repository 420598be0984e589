import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { brokenTexts, jsonTexts, numberTexts, rfcNumbers } from '../../tests/support/json-texts.ts';
import { canonicalJson } from './canonical-json.ts';
import type { ErrorDetail } from './errors.ts';
import { parseExactJson } from './exact-json.ts';

function valueOf(text: string): unknown {
  const read = parseExactJson(text);
  assert(read.ok, `refused: ${text.slice(0, 100)}`);
  return read.value;
}

function flawOf(text: string, root?: string): ErrorDetail {
  const read = parseExactJson(text, root);
  assert(!read.ok, `accepted: ${text.slice(0, 100)}`);
  return read.flaw;
}

/** Which field is refused, and why. */
function refusalOf(text: string): readonly [field: string, reason: string] {
  const { field, reason } = flawOf(text);
  return [field, reason];
}

test('what JSON.stringify writes is read as it was', () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'grapheme', maxDepth: 6 }), (value) => {
      const text = JSON.stringify(value);
      fc.pre(!text.includes('__proto__') && !text.includes('\\u0000'));
      assert.equal(canonicalJson(valueOf(text)), canonicalJson(value));
    }),
    { numRuns: 1000 },
  );
});

test('exactly what is JSON is not refused for its syntax', () => {
  fc.assert(
    fc.property(fc.oneof(brokenTexts, jsonTexts, numberTexts, fc.string()), (text) => {
      const read = parseExactJson(text);
      const isSyntax = !read.ok && read.flaw.reason === 'syntax';
      if (isSyntax) assert.throws(() => JSON.parse(text), SyntaxError);
      else assert.doesNotThrow(() => void JSON.parse(text));
    }),
    { numRuns: 2000 },
  );
});

test('a syntax error is a flaw of the whole text', () => {
  assert.deepEqual(flawOf('{"a":'), { field: 'body', reason: 'syntax', message: 'must be valid JSON' });
  assert.equal(flawOf('', 'request').field, 'request');
  for (const text of [
    '{"a":1,}',
    '[1 2]',
    '01',
    '1.',
    '.5',
    '+1',
    '1e',
    'NaN',
    "'a'",
    '"\t"',
    '\ufeff{}',
    '{}x',
  ])
    assert.equal(flawOf(text).reason, 'syntax', text);
});

test('a key that is there twice is refused, however it is spelt', () => {
  assert.deepEqual(refusalOf('{"a":1,"a":1}'), ['a', 'duplicate_key']);
  assert.deepEqual(refusalOf(String.raw`{"a":1,"\u0061":2}`), ['a', 'duplicate_key']);
  assert.deepEqual(refusalOf('{"items":[{"qty":1},{"qty":1,"b":{},"qty":2}]}'), [
    'items.1.qty',
    'duplicate_key',
  ]);
  assert.deepEqual(refusalOf('{"":{"":1,"":2}}'), ['.', 'duplicate_key']);
  assert.deepEqual(refusalOf('{"toString":1,"toString":1}'), ['toString', 'duplicate_key']);
});

test('the same key in two objects, and a key of every object, are no duplicates', () => {
  const text = '[{"a":{"a":[{"a":"a"}]}},{"a":"a"},{"toString":1,"constructor":2,"hasOwnProperty":3}]';
  assert.equal(JSON.stringify(valueOf(text)), text);
});

// JSON.parse of this V8 reads the second key of the second text as `\`.
test('a key with escapes is not taken for one that was read before', () => {
  valueOf(String.raw`{"h":[],"\\":0}`);
  for (const [written, key] of [
    [String.raw`\"`, '"'],
    [String.raw`\n`, '\n'],
    [String.raw`\u0041`, 'A'],
  ] as const)
    assert.deepEqual(Object.keys(valueOf(`{"h":1,"${written}":2}`) as object), ['h', key]);
});

test('a number is refused if it becomes another one as a double', () => {
  const refused = ['12345678901234567890', '1e400', '-1e400', '1e-400', '0.1000000000000000055511'];
  for (const text of [...refused, '9007199254740993', '4.9e-324', '1.7976931348623158e308', '1e99999999999'])
    assert.deepEqual(refusalOf(text), ['body', 'inexact_number'], text);
  assert.deepEqual(refusalOf('{"request":{"items":[{"qty":1},{"qty":1e400}]}}'), [
    'request.items.1.qty',
    'inexact_number',
  ]);
  assert.deepEqual(refusalOf('[[0,1],[0,{"a":2},1e400]]'), ['1.2', 'inexact_number']);
});

test('a number is accepted in every spelling of its shortest form', () => {
  const spellings = ['10000', '10000.0', '1E4', '1e+4', '0.1e5', '1000000e-2', '1e0000000000000000000004'];
  for (const text of [...spellings, `1${'0'.repeat(20_000)}e-19996`, `0.${'0'.repeat(20_000)}1e20005`])
    assert.equal(valueOf(text), 10_000, text);
  for (const text of ['0', '-0', '0.00', '-0E5', '0e400000', '0e-400000', '0e99999999999999999999'])
    assert.equal(canonicalJson(valueOf(text)), '0', text);
  for (const [, text] of rfcNumbers) assert.equal(canonicalJson(valueOf(text)), text);
});

test('a text or key that PostgreSQL cannot store is refused', () => {
  assert.deepEqual(refusalOf(String.raw`{"a":["x\u0000"]}`), ['a.0', 'unstorable_text']);
  assert.deepEqual(refusalOf(String.raw`{"a":{"\ud800":1}}`), ['a.\ufffd', 'unstorable_text']);
  assert.deepEqual(refusalOf(String.raw`{"a":"\udc00\ud800"}`), ['a', 'unstorable_text']);
  assert.deepEqual(refusalOf('{"a":"\ud800"}'), ['a', 'unstorable_text']);
  assert.equal(valueOf(String.raw`"\ud83d\ude00\\u0000"`), '\u{1f600}\\u0000');
});

test('a key that would replace a prototype is refused', () => {
  assert.deepEqual(refusalOf('{"a":{"__proto__":{"isAdmin":true}}}'), ['a.__proto__', 'forbidden_key']);
  assert.deepEqual(refusalOf(String.raw`{"\u005f_proto__":1}`), ['__proto__', 'forbidden_key']);
  assert.deepEqual(refusalOf('{"__proto__":1,"__proto__":2}'), ['__proto__', 'duplicate_key']);
});

test('512 levels are accepted, 513 are not', () => {
  const nested = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`;
  const members = (levels: number): string => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
  for (const text of [nested(512), members(512)]) assert.equal(JSON.stringify(valueOf(text)), text);
  for (const text of [nested(513), members(513), nested(500_000)])
    assert.deepEqual(refusalOf(text), ['body', 'max_depth']);
});

test('what lies beyond the last level is not even read', () => {
  assert.equal(flawOf(`${'['.repeat(512)}{"a":1,"a":2}${']'.repeat(512)}`).reason, 'max_depth');
});

test('megabytes of the worst take no more than a moment', () => {
  const million = 1_000_000;
  const texts = [
    `{"a":"${'\\\\'.repeat(million)}"}`,
    `{"a":"${String.raw`\"`.repeat(million)}"}`,
    `[${'0,'.repeat(million)}0]`,
    `1${'0'.repeat(million)}1${'0'.repeat(million)}`,
    `0.${'0'.repeat(million)}1${'0'.repeat(million)}e${million + 1}`,
    `${' '.repeat(million)}{}${' '.repeat(million)}`,
    `{${Array.from({ length: 100_000 }, (_, i) => `"key${i}":${i}`).join(',')}}`,
    `[${'{"a":[]},'.repeat(200_000)}{}]`,
    '['.repeat(million),
  ];
  const begin = performance.now();
  for (const text of texts) parseExactJson(text);
  assert.ok(performance.now() - begin < 10_000);
});
