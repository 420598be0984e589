import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { readHeaders, storeHeaders } from './stored-headers.ts';

const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 20 }).map((array) => Buffer.from(array)),
  fc.string({ unit: 'binary', maxLength: 20 }).map((text) => Buffer.from(text, 'utf8')),
);

test('headers are read back byte for byte, in order, with duplicates and nulls', () => {
  const headers = fc.array(fc.record({ key: bytes, value: fc.option(bytes) }, { noNullPrototype: true }), {
    maxLength: 8,
  });
  fc.assert(
    fc.property(headers, (list) => {
      const text = JSON.stringify(storeHeaders(list));
      assert.ok(!text.includes('\\u0000'), 'PostgreSQL refuses NUL in jsonb');
      assert.deepEqual(readHeaders(JSON.parse(text)), list);
    }),
  );
});

test('a plain header is stored as text', () => {
  const stored = storeHeaders([{ key: Buffer.from('error'), value: Buffer.from('timeout') }]);
  assert.deepEqual(stored, [{ key: 'error', value: 'timeout' }]);
});

test('rows without headers have none', () => {
  assert.deepEqual(readHeaders(null), []);
});
