import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { rawJson, stringifyWithRaw } from './raw-json.ts';

test('raw JSON stands in the text exactly as it was given', () => {
  const value = {
    a: rawJson('{"n": 1e400}'),
    list: [rawJson('12345678901234567890'), null],
    b: rawJson('null'),
  };
  assert.equal(stringifyWithRaw(value), '{"a":{"n": 1e400},"list":[12345678901234567890,null],"b":null}');
  assert.equal(stringifyWithRaw(rawJson('[1]')), '[1]');
});

test('without raw JSON the text is that of JSON.stringify', () => {
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

test('a bigint is written as the number that it is', () => {
  assert.equal(stringifyWithRaw({ count: 9007199254740993n }), '{"count":9007199254740993}');
});

test('a client cannot make raw JSON out of its own input', () => {
  const sent: unknown = JSON.parse('{"Symbol(raw json)":"1e400","text":"\\"}"}');
  assert.equal(stringifyWithRaw({ sent }), '{"sent":{"Symbol(raw json)":"1e400","text":"\\"}"}}');
});
