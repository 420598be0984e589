import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseFilter, placeTerms, printFilter, type Term } from './filter.ts';

const qualifiers = fc.stringMatching(/^[a-z][a-z_]{0,8}$/);
const values = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('a:b', '-x', '"', '\\', ' ', 'orders.*', 'x "y" z', '日本 語'),
);
const terms: fc.Arbitrary<Term> = fc
  .record({ qualifier: fc.option(qualifiers), value: values, isExcluded: fc.boolean() })
  .filter(({ qualifier, value }) => qualifier !== null || value !== '');

test('every filter is parsed as it was printed', () => {
  fc.assert(
    fc.property(fc.array(terms), (filter) => {
      expect(parseFilter(printFilter(filter))).toEqual(filter);
    }),
  );
});

test('printing a parsed text again changes nothing more', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const once = printFilter(parseFilter(text));
      expect(printFilter(parseFilter(once))).toBe(once);
    }),
  );
});

test('terms cover everything but the spaces of a text', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('a', ':', '"', '\\', ' ', '-', '\t') }), (text) => {
      const rest = placeTerms(text).reduceRight(
        (left, { start, end }) => left.slice(0, start) + left.slice(end),
        text,
      );
      expect(rest.trim()).toBe('');
    }),
  );
});

test('reads the filters that people write', () => {
  expect(parseFilter('status:DEAD -topic:x error:"a b" timed "free text"')).toEqual([
    { qualifier: 'status', value: 'DEAD', isExcluded: false },
    { qualifier: 'topic', value: 'x', isExcluded: true },
    { qualifier: 'error', value: 'a b', isExcluded: false },
    { qualifier: null, value: 'timed', isExcluded: false },
    { qualifier: null, value: 'free text', isExcluded: false },
  ]);
  expect(placeTerms('key:"open')[0]?.isUnclosed).toBe(true);
  expect(parseFilter('-')).toEqual([]);
});
