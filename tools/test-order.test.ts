import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { longestFirst, longFiles } from './test-order.ts';

test('long files start first, in their order, and the others by name', () => {
  const [longest = '', next = ''] = longFiles;
  assert.deepEqual(longestFirst(['b.test.ts', next, 'a.test.ts', longest]), [
    longest,
    next,
    'a.test.ts',
    'b.test.ts',
  ]);
});

test('every long file exists, and is named once', () => {
  assert.deepEqual(
    longFiles.filter((file) => !existsSync(new URL(`../${file}`, import.meta.url))),
    [],
  );
  assert.equal(new Set(longFiles).size, longFiles.length);
});
