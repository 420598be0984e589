import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { noteLimited } from '../../kernel/targets/throttle.ts';
import { claimableNow, noteClaimed, type QueueLimits } from './queue-limits.ts';

const startMs = 1_800_000_000_000;

const unlimited: QueueLimits = {
  isPaused: false,
  maxRunning: null,
  rateLimit: null,
  windowAtMs: null,
  windowTaken: 0,
  throttle: null,
};

test('without limits a claim is unbounded and changes nothing', () => {
  assert.equal(claimableNow(unlimited, 1000, startMs), Infinity);
  assert.equal(noteClaimed(unlimited, 500, startMs), unlimited);
});

test('nothing can be claimed from a paused queue, whatever its limits', () => {
  assert.equal(claimableNow({ ...unlimited, isPaused: true }, 0, startMs), 0);
  assert.equal(claimableNow({ ...unlimited, isPaused: true, maxRunning: 5 }, 0, startMs), 0);
});

test('the limit of running jobs applies, even after it was lowered', () => {
  const limits = { ...unlimited, maxRunning: 3 };
  assert.deepEqual(
    [0, 2, 3, 9].map((running) => claimableNow(limits, running, startMs)),
    [3, 1, 0, 0],
  );
  assert.equal(noteClaimed(limits, 3, startMs), limits);
});

test('a window allows its count, and the next one starts anew', () => {
  const limits: QueueLimits = { ...unlimited, rateLimit: { count: 20, windowMs: 60_000 } };
  const some = noteClaimed(limits, 15, startMs + 100);
  assert.equal(claimableNow(some, 0, startMs + 59_999), 5);
  const all = noteClaimed(some, 5, startMs + 200);
  assert.equal(claimableNow(all, 0, startMs + 59_999), 0);
  assert.equal(claimableNow(all, 0, startMs + 60_000), 20);
  assert.equal(noteClaimed(all, 0, startMs + 300), all);
});

test('earlier claims count in a window that became longer, and not after the clock was set back', () => {
  const limits: QueueLimits = { ...unlimited, rateLimit: { count: 10, windowMs: 1000 } };
  const taken = noteClaimed(limits, 7, startMs + 5500);
  const longer = { ...taken, rateLimit: { count: 10, windowMs: 60_000 } };
  assert.equal(claimableNow(longer, 0, startMs + 6500), 3);
  assert.equal(claimableNow(taken, 0, startMs), 10);
});

test('a throttle limits the claims of its second, and is removed by the first claim after it has ended', () => {
  const throttle = noteLimited(null, { measuredRate: 20 }, startMs);
  const limits = { ...unlimited, throttle };
  assert.equal(claimableNow(limits, 0, startMs + 1000), 10);
  assert.equal(claimableNow(noteClaimed(limits, 10, startMs + 1000), 0, startMs + 1999), 0);
  assert.equal(claimableNow(limits, 0, startMs + 60_000), Infinity);
  assert.equal(noteClaimed(limits, 0, startMs + 60_000).throttle, null);
});

const step = fc.record({
  waitMs: fc.oneof(fc.nat(200), fc.nat(2000)),
  wanted: fc.integer({ min: 1, max: 50 }),
  /** Of the running jobs. */
  ends: fc.nat(50),
  isBusy: fc.boolean(),
});

test('no sequence of claims exceeds the limit of running jobs or the rate limit', () => {
  fc.assert(
    fc.property(
      fc.option(fc.integer({ min: 1, max: 20 })),
      fc.option(fc.record({ count: fc.integer({ min: 1, max: 40 }), windowMs: fc.constantFrom(1000, 1500) })),
      fc.array(step, { maxLength: 60 }),
      (maxRunning, rateLimit, steps) => {
        let limits: QueueLimits = { ...unlimited, maxRunning, rateLimit };
        let nowMs = startMs;
        let running = 0;
        const started = new Map<number, number>();
        for (const { waitMs, wanted, ends, isBusy } of steps) {
          nowMs += waitMs;
          running -= Math.min(running, ends);
          if (isBusy)
            limits = { ...limits, throttle: noteLimited(limits.throttle, { measuredRate: 30 }, nowMs) };
          const count = Math.min(wanted, claimableNow(limits, running, nowMs));
          limits = noteClaimed(limits, count, nowMs);
          running += count;
          assert.ok(running <= (maxRunning ?? Infinity));
          if (rateLimit === null) continue;
          const window = Math.floor(nowMs / rateLimit.windowMs);
          const inWindow = (started.get(window) ?? 0) + count;
          started.set(window, inWindow);
          assert.ok(inWindow <= rateLimit.count);
          const isFree = (maxRunning === null || running < maxRunning) && limits.throttle === null;
          if (count < wanted && isFree) assert.equal(inWindow, rateLimit.count, 'a window is used up');
        }
      },
    ),
  );
});
