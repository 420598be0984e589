import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deadlineIn, halfwayTo } from './deadline.ts';

const leftMs = (timeoutMs: number): number =>
  Math.round((halfwayTo(deadlineIn(timeoutMs), 5000).atMs - performance.now()) / 100) * 100;

test('half of a deadline is never shorter than the least time, and never later than the deadline', () => {
  assert.deepEqual(
    [60_000, 12_000, 10_000, 8000, 5000, 1000].map(leftMs),
    [30_000, 6000, 5000, 5000, 5000, 1000],
  );
});
