import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { formatJson } from './format-json.ts';

test('JSON is written as JSON.stringify indents it, however it was spelt', () => {
  fc.assert(
    fc.property(fc.json(), fc.constantFrom(undefined, 1, '\t'), (json, indent) => {
      const value: unknown = JSON.parse(json);
      const spelt = JSON.stringify(value, null, indent);
      assert.equal(formatJson(spelt, 1e6), `${JSON.stringify(value, null, 2)}\n`);
    }),
  );
});

test('numbers and strings keep their spelling', () => {
  assert.equal(
    formatJson('{"n":1.00E+2,"a\\"b":[ ],"s":"\\u00fc,{"}', 1000),
    `{
  "n": 1.00E+2,
  "a\\"b": [],
  "s": "\\u00fc,{"
}
`,
  );
});

test('what becomes too long is not written', () => {
  const deep = `${'['.repeat(500)}${'1,'.repeat(10_000)}1${']'.repeat(500)}`;
  assert.equal(formatJson(deep, 1_000_000), null);
});
