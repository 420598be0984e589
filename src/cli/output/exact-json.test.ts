import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseExactJson } from './exact-json.ts';

test('numbers keep their digits', () => {
  const text = '{"n":12345678901234567890,"d":1.10,"e":1e400,"z":-0,"plain":7}';
  assert.equal(JSON.stringify(parseExactJson(text)), text);
});

test('numbers that JavaScript formats the same are numbers', () => {
  assert.deepEqual(parseExactJson('{"a":[1,2.5,null,"3"]}'), { a: [1, 2.5, null, '3'] });
});

test('a number that JavaScript cannot hold shows its digits as text', () => {
  const { offset } = parseExactJson('{"offset":9007199254740993}') as { offset: unknown };
  assert.equal(String(offset), '9007199254740993');
});
