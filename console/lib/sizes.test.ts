import { expect, test } from 'vitest';
import { shortCount } from './sizes.ts';

test('a short count has at most four characters and is never too large', () => {
  expect([0, 7, 999, 1000, 1999, 12_431, 999_999, 1_000_000, 10_000_000].map(shortCount)).toEqual([
    '0',
    '7',
    '999',
    '1k',
    '1k',
    '12k',
    '999k',
    '1M',
    '10M',
  ]);
});
