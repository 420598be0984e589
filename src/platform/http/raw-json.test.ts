import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { rawJson, stringifyWithRaw } from './raw-json.ts';

test('raw JSON is written unchanged', () => {
  const value = {
    a: rawJson('{"n": 1e400}'),
    list: [rawJson('12345678901234567890'), null],
    b: rawJson('null'),
  };
  assert.equal(stringifyWithRaw(value), '{"a":{"n": 1e400},"list":[12345678901234567890,null],"b":null}');
  assert.equal(stringifyWithRaw(rawJson('[1]')), '[1]');
});

test('without raw JSON the text equals JSON.stringify', () => {
  const value = fc.object({
    withDate: true,
    withUnicodeString: true,
    withObjectString: true,
    withNullPrototype: true,
    values: [fc.string(), fc.double(), fc.constant(undefined), fc.boolean(), fc.constant(null)],
  });
  fc.assert(
    fc.property(value, (value) => {
      assert.equal(stringifyWithRaw(value), JSON.stringify(value));
    }),
  );
});

test('a bigint is written as a number', () => {
  assert.equal(stringifyWithRaw({ count: 9007199254740993n }), '{"count":9007199254740993}');
});

test('client input cannot become raw JSON', () => {
  const sent: unknown = JSON.parse('{"Symbol(raw json)":"1e400","text":"\\"}"}');
  assert.equal(stringifyWithRaw({ sent }), '{"sent":{"Symbol(raw json)":"1e400","text":"\\"}"}}');
});
