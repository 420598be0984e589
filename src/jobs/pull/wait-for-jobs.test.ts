import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createWaitForJobs } from './wait-for-jobs.ts';

test('beyond the limit of names it only sleeps, and the wait still ends', async () => {
  const listened: string[] = [];
  const wait = createWaitForJobs({ wait: async (channel) => listened.push(channel) > 0 }, 2);
  const { signal } = new AbortController();
  for (const queue of ['a', 'b', 'a', 'c', 'd', 'b']) await wait(queue, 1, signal);
  assert.deepEqual(listened, ['jobs:a', 'jobs:b', 'jobs:a', 'jobs:b']);
});

test('a wait without listening ends with its signal', async () => {
  const wait = createWaitForJobs({ wait: async () => false }, 0);
  await wait('a', 3_600_000, AbortSignal.abort());
});
