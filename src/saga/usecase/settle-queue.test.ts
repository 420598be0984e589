import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SagaSettle, SettleResult } from './ports.ts';
import { createSettleQueue } from './settle-queue.ts';

const settled: SettleResult = { outcome: 'settled' };
const mebibyte = 1024 * 1024;

/** The queue passes it on and does not look at it. */
const one = {} as SagaSettle;

test('a batch is bounded by its size as well as by its number, and what is larger goes by itself', async () => {
  const batches: number[] = [];
  const queue = createSettleQueue({
    async settle(settles) {
      batches.push(settles.length);
      return settles.map(() => settled);
    },
  });
  const sizes = [mebibyte, 3 * mebibyte, mebibyte, 9 * mebibyte, ...Array.from({ length: 260 }, () => 1000)];
  await Promise.all(sizes.map((bytes) => queue.settle(one, bytes)));
  // Two writers take turns, so the order of the batches is theirs.
  assert.deepEqual(
    batches.toSorted((a, b) => a - b),
    [1, 1, 2, 10, 250],
  );
});

test('where a write fails and nobody knows how it ended, that is the result', async () => {
  const error = new Error('lost');
  const queue = createSettleQueue({ settle: () => Promise.reject(error) });
  assert.deepEqual(await queue.settle(one, 1), { outcome: 'unclear', error });
});
