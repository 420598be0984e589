import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createWaitForJobs } from './wait-for-jobs.ts';

test('beyond a number of names nobody listens, and whoever waits still comes back', async () => {
  const listened: string[] = [];
  const wait = createWaitForJobs({ wait: async (channel) => void listened.push(channel) }, 2);
  const { signal } = new AbortController();
  for (const queue of ['a', 'b', 'a', 'c', 'd', 'b']) await wait(queue, 1, signal);
  assert.deepEqual(listened, ['jobs:a', 'jobs:b', 'jobs:a', 'jobs:b']);
});

test('a wait that nobody listens for ends with its signal', async () => {
  const wait = createWaitForJobs({ wait: async () => {} }, 0);
  await wait('a', 3_600_000, AbortSignal.abort());
});
