import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatBytes, formatCount } from './sizes.ts';
import { formatAbsolute, formatDuration, formatIso } from './times.ts';

test('durations have one or two units', () => {
  const minute = 60_000;
  expect(formatDuration(-5, 'en')).toBe('0 s');
  expect(formatDuration(59_999, 'en')).toBe('59 s');
  expect(formatDuration(12 * minute, 'en')).toBe('12 m');
  expect(formatDuration(64 * minute, 'en')).toBe('1 h 04 m');
  expect(formatDuration(26 * 60 * minute, 'en')).toBe('1 d 2 h');
  expect(formatDuration(64 * minute, 'ja')).toBe('1時間04分');
});

test('today needs no date', () => {
  const now = Date.parse('2026-11-19T14:15:00Z');
  expect(formatAbsolute(Date.parse('2026-11-19T14:03:21Z'), now, 'utc')).toBe('14:03:21');
  expect(formatAbsolute(Date.parse('2026-11-18T14:03:21Z'), now, 'utc')).toBe('2026-11-18 14:03');
});

test('an ISO time means the same instant in any zone', () => {
  fc.assert(
    fc.property(fc.date({ noInvalidDate: true, min: new Date('1900-01-01') }), (date) => {
      expect(Date.parse(formatIso(date.getTime(), 'utc'))).toBe(date.getTime());
      const local = Date.parse(formatIso(date.getTime(), 'local'));
      expect(Math.abs(local - date.getTime())).toBeLessThan(60_000);
    }),
  );
});

test('sizes and counts have few digits and groups', () => {
  expect([0, 812, 999, 1000, 1400, 99_949, 99_950, 999_499, 999_500, 5e6].map(formatBytes)).toEqual([
    '0 B',
    '812 B',
    '999 B',
    '1.0 kB',
    '1.4 kB',
    '99.9 kB',
    '100 kB',
    '999 kB',
    '1.0 MB',
    '5.0 MB',
  ]);
  expect([7, 12431, 1234567].map(formatCount)).toEqual(['7', '12\u202f431', '1\u202f234\u202f567']);
});
