import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { createRateLimiter } from './rate-limiter.ts';

function limiterAt(perMinute: number, maxKeys?: number) {
  let now = 0;
  const limiter = createRateLimiter({
    perMinute,
    nowMs: () => now,
    ...(maxKeys === undefined ? {} : { maxKeys }),
  });
  return { take: (key: string, atMs: number) => ((now = atMs), limiter.take(key)) };
}

test('a key has so many events in a minute from its first one', () => {
  const { take } = limiterAt(2);
  assert.deepEqual([take('a', 0), take('a', 10_000), take('a', 20_000)], [0, 0, 40_000]);
  assert.equal(take('b', 20_000), 0, 'another key has its own minute');
  assert.equal(take('a', 59_999), 1);
  assert.equal(take('a', 60_000), 0);
});

test('above the bound of keys the oldest is forgotten, and no other', () => {
  const { take } = limiterAt(1, 2);
  take('old', 0);
  take('middle', 1);
  take('new', 2);
  assert.ok(take('middle', 3) > 0);
  assert.equal(take('old', 4), 0);
});

const events = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c'), fc.nat(20_000)), { maxLength: 200 });

test('no minute has more than two limits of a key, and a refused key gets in when it was told to', () => {
  fc.assert(
    fc.property(events, fc.integer({ min: 1, max: 5 }), (steps, perMinute) => {
      const { take } = limiterAt(perMinute);
      const admitted = new Map<string, number[]>();
      let now = 0;
      let refused: Readonly<{ key: string; untilMs: number }> | undefined;
      for (const [key, pauseMs] of steps) {
        now += pauseMs;
        const waitMs = take(key, now);
        if (waitMs === 0) admitted.set(key, [...(admitted.get(key) ?? []), now]);
        refused = waitMs === 0 ? undefined : { key, untilMs: now + waitMs };
      }
      for (const times of admitted.values())
        for (const start of times)
          assert.ok(times.filter((at) => at >= start && at < start + 60_000).length <= 2 * perMinute);
      if (refused !== undefined) assert.equal(take(refused.key, refused.untilMs), 0);
    }),
  );
});
