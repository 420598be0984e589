import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pushCheck, type WatchedQueue } from './push-check.ts';

/** `lookedAtMs` and `zombies` of a queue's worker; the clock says 200 s, and a job may take 60 s. */
function check(
  workers: Readonly<Record<string, readonly [lookedAtMs: number | null, zombies: number]>>,
  pushing = 1,
) {
  const queues = Object.entries(workers).map(([name, [lookedAtMs, zombies]]): WatchedQueue => ({
    name,
    concurrency: 2,
    timeoutMs: () => (name === 'slow' ? 60_000 : 1000),
    worker: { lookedAtMs: () => lookedAtMs, zombies: () => zombies },
    downSince: () => (name === 'down' ? new Date('2026-05-01T10:00:00Z') : null),
  }));
  const clock = { now: () => new Date(), monotonicMs: () => 200_000 };
  return pushCheck({ clock, countPushing: async () => pushing }, queues).check(new AbortController().signal);
}

test('workers that look for jobs are healthy, whatever the outcomes of the jobs', async () => {
  assert.deepEqual(await check({ mail: [199_900, 0], slow: [199_000, 1] }), { status: 'healthy' });
});

test("a worker that waits for another queue's job, which may take its time, is healthy", async () => {
  assert.deepEqual(await check({ mail: [120_000, 0], slow: [199_000, 0] }), { status: 'healthy' });
});

test('a worker that no longer looks for jobs degrades', async () => {
  assert.deepEqual(await check({ mail: [75_000, 0], slow: [199_000, 0] }), {
    status: 'degraded',
    message: 'mail has not looked for jobs for 125 s',
  });
});

test('a worker whose calls do not stop degrades', async () => {
  assert.deepEqual(await check({ mail: [199_900, 2], slow: [199_000, 0] }), {
    status: 'degraded',
    message: 'mail takes no jobs: 2 calls did not stop when they were told to',
  });
});

test('a target that is down degrades', async () => {
  assert.deepEqual(await check({ mail: [199_900, 0], down: [199_900, 0] }), {
    status: 'degraded',
    message: 'the target of down has not answered since 2026-05-01T10:00:00.000+00:00',
  });
});

test('a process that does not push is healthy while another one does', async () => {
  assert.deepEqual(await check({ mail: [null, 0] }, 1), { status: 'healthy' });
  const { status, message } = await check({ mail: [null, 0] }, 0);
  assert.equal(status, 'degraded');
  assert.match(message ?? '', /no process with the role workers/);
});
