import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTurns } from './turns.ts';

test('no more than so many work at once, and everybody gets a turn in the order of arrival', async () => {
  const turns = createTurns(2);
  const order: number[] = [];
  let running = 0;
  let most = 0;
  await Promise.all(
    Array.from({ length: 9 }, (_, i) =>
      turns.take(async () => {
        running += 1;
        most = Math.max(most, running);
        order.push(i);
        await Promise.resolve();
        running -= 1;
      }),
    ),
  );
  assert.equal(most, 2);
  assert.deepEqual(
    order,
    order.toSorted((a, b) => a - b),
  );
});

test('who fails leaves the turn to the next', async () => {
  const turns = createTurns(1);
  await assert.rejects(turns.take(() => Promise.reject(new Error('no'))));
  assert.equal(await turns.take(async () => 'yes'), 'yes');
});
