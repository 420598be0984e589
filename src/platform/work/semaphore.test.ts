import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSemaphore } from './semaphore.ts';

test('no more calls than permits run in parallel, and all run in the order of their arrival', async () => {
  const semaphore = createSemaphore(2);
  const order: number[] = [];
  let running = 0;
  let most = 0;
  await Promise.all(
    Array.from({ length: 9 }, (_, i) =>
      semaphore.run(async () => {
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

test('a call that fails returns its permit', async () => {
  const semaphore = createSemaphore(1);
  await assert.rejects(semaphore.run(() => Promise.reject(new Error('no'))));
  assert.equal(await semaphore.run(async () => 'yes'), 'yes');
});
