import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { storableJson } from './storable-json.ts';

const clean = (value: unknown): unknown => JSON.parse(storableJson(JSON.stringify(value)));

test('NUL and lone surrogates become U+FFFD, in keys too, and nothing else changes', () => {
  assert.deepEqual(clean({ 'a\0': ['\ud800', '\\u0000', '\u0001', '\u{1f600}', '\\\0'] }), {
    'a\uFFFD': ['\uFFFD', '\\u0000', '\u0001', '\u{1f600}', '\\\uFFFD'],
  });
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      assert.equal(clean(text), text.toWellFormed().replaceAll('\0', '\uFFFD'));
    }),
  );
});
