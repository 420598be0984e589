import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../kernel/clock.ts';
import type { SagaSettle } from '../write-sagas.ts';
import { createSettle, type SettleResult } from './settle-sagas.ts';

const settled: SettleResult = { outcome: 'settled' };
const mebibyte = 1024 * 1024;

/** Passed on unread. */
const one = {} as SagaSettle;

test('a batch has at most 250 steps and 4 MiB, and a larger step is written by itself', async () => {
  const batches: number[] = [];
  const settle = createSettle(async (settles) => {
    batches.push(settles.length);
    return settles.map(() => settled);
  }, systemClock);
  const sizes = [mebibyte, 3 * mebibyte, mebibyte, 9 * mebibyte, ...Array.from({ length: 260 }, () => 1000)];
  await Promise.all(sizes.map((bytes) => settle(one, bytes)));
  // Three writers run in parallel, so the order of the batches is not fixed.
  assert.deepEqual(
    batches.toSorted((a, b) => a - b),
    [1, 1, 2, 10, 250],
  );
});

test('a failed write has the result unclear', async () => {
  const error = new Error('lost');
  const settle = createSettle(() => Promise.reject(error), systemClock);
  assert.deepEqual(await settle(one, 1), { outcome: 'unclear', error });
});
