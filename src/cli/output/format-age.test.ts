import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatAge } from './format-age.ts';

const now = new Date('2026-02-20T10:30:00.000Z');

const ages: readonly (readonly [instant: string | null, age: string])[] = [
  [null, '-'],
  ['2026-02-20T10:30:00.000+00:00', 'now'],
  ['2026-02-20T10:31:00.000+00:00', 'now'],
  ['2026-02-20T10:29:15.000+00:00', '45s ago'],
  ['2026-02-20T10:26:59.000+00:00', '3m ago'],
  ['2026-02-19T10:26:00.000+00:00', '24h ago'],
  ['2026-02-15T10:30:00.000+00:00', '5d ago'],
  ['2023-02-20T10:30:00.000+00:00', '3y ago'],
  ['no date', 'no date'],
];

for (const [instant, age] of ages)
  test(`the age of ${instant} is "${age}"`, () => assert.equal(formatAge(instant, now), age));
