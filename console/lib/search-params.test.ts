import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseSearchParams, printSearchParams } from './search-params.ts';

test('what is printed is parsed again', () => {
  const values = fc.dictionary(
    fc.string({ minLength: 1 }).filter((name) => name !== '__proto__'),
    fc.string({ minLength: 1, unit: 'grapheme' }),
  );
  fc.assert(
    fc.property(values, (search) => {
      expect(parseSearchParams(printSearchParams(search))).toEqual({ ...search });
    }),
  );
});

test('an address can be read', () => {
  expect(printSearchParams({ q: 'status:DEAD,PENDING topic:orders.*', peek: undefined })).toBe(
    '?q=status:DEAD,PENDING+topic:orders.*',
  );
});
