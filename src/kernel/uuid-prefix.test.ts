import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { minPrefixDigits, uuidsWithPrefix } from './uuid-prefix.ts';

test('a prefix of any length is a range of UUIDs', () => {
  assert.deepEqual(uuidsWithPrefix('01A1df'), {
    first: '01a1df00-0000-0000-0000-000000000000',
    last: '01a1dfff-ffff-ffff-ffff-ffffffffffff',
  });
  assert.deepEqual(uuidsWithPrefix('01a1dfae-c3a5-7'), {
    first: '01a1dfae-c3a5-7000-0000-000000000000',
    last: '01a1dfae-c3a5-7fff-ffff-ffffffffffff',
  });
});

test('a UUID lies in the range of each of its prefixes, with and without hyphens', () => {
  fc.assert(
    fc.property(fc.uuid(), fc.integer({ min: minPrefixDigits, max: 36 }), (uuid, length) => {
      for (const prefix of [uuid.slice(0, length), uuid.replaceAll('-', '').slice(0, length)]) {
        const range = uuidsWithPrefix(prefix);
        assert.ok(range !== null && range.first <= uuid && uuid <= range.last, prefix);
      }
    }),
  );
});

for (const text of [
  '',
  '01a1d',
  '01a1dg',
  '01a1df-',
  '01a1dfaec-3a5',
  '01a1dfae--c3a5',
  '-01a1dfae',
  ' 01a1df',
  'f'.repeat(33),
])
  test(`"${text}" is not the beginning of a UUID`, () => assert.equal(uuidsWithPrefix(text), null));
