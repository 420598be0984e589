import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import {
  countSent,
  emptyMeter,
  blockedForMs,
  measuredRate,
  noteLimited,
  rateAt,
  spendTokens,
  takeTokens,
  tokensLeft,
  windowAt,
  windowEndsInMs,
  type Meter,
  type Throttle,
} from './throttle.ts';

const startMs = 1_800_000_000_000;
const hourMs = 3_600_000;

test('the first 429 halves the measured rate, which recovers by 5 % of the peak per quiet second', () => {
  const throttle = noteLimited(null, { measuredRate: 200 }, startMs);
  const rates = [0, 999, 1999, 2000, 2999, 3000, 10_999, 11_000, 60_000].map((ms) =>
    rateAt(throttle, startMs + ms),
  );
  assert.deepEqual(rates, [100, 100, 100, 110, 110, 120, 190, null, null]);
});

test('a second 429 halves the current rate, once a second has passed', () => {
  const first = noteLimited(null, { measuredRate: 200 }, startMs);
  assert.equal(noteLimited(first, { measuredRate: 200 }, startMs + 999), first);
  const second = noteLimited(first, { measuredRate: 7 }, startMs + 3000);
  assert.deepEqual([second.rate, second.peak, second.cutAtMs], [60, 200, startMs + 3000]);
});

test('a 429 after the recovery is a first one again', () => {
  const first = noteLimited(null, { measuredRate: 200, retryAfterMs: 500 }, startMs);
  const again = noteLimited(first, { measuredRate: 30 }, startMs + 60_000);
  assert.deepEqual([again.rate, again.peak], [15, 30]);
});

test('no rate falls below one call per second, and a peak of one recovers after a quiet second', () => {
  let throttle = noteLimited(null, { measuredRate: 3 }, startMs);
  for (let i = 1; i < 5; i += 1) throttle = noteLimited(throttle, { measuredRate: 1 }, startMs + i * 1000);
  assert.deepEqual([throttle.rate, throttle.peak], [1, 3]);
  const lowest = noteLimited(null, { measuredRate: 0.2 }, startMs);
  assert.deepEqual([rateAt(lowest, startMs + 1999), rateAt(lowest, startMs + 2000)], [1, null]);
});

test('Retry-After blocks all calls, and blocked seconds do not count as quiet', () => {
  const blocked = noteLimited(null, { measuredRate: 100, retryAfterMs: 30_000 }, startMs);
  assert.equal(blockedForMs(blocked, startMs + 29_999), 1);
  assert.deepEqual(takeTokens(blocked, 1, startMs + 29_999), { throttle: blocked, tokens: 0 });
  assert.equal(takeTokens(blocked, 1, startMs + 30_000).tokens, 50);
  assert.equal(rateAt(blocked, startMs + 30_999), 50);
  assert.equal(rateAt(blocked, startMs + 31_000), 55);
});

test('a Retry-After is never shortened, and lasts an hour at most', () => {
  const long = noteLimited(null, { measuredRate: 10, retryAfterMs: 60_000 }, startMs);
  assert.equal(noteLimited(long, { measuredRate: 10, retryAfterMs: 1000 }, startMs + 100), long);
  assert.equal(noteLimited(long, { measuredRate: 10 }, startMs + 2000).holdUntilMs, startMs + 60_000);
  const longer = noteLimited(long, { measuredRate: 10, retryAfterMs: 90_000_000 }, startMs + 5);
  assert.equal(longer.holdUntilMs, startMs + 5 + hourMs);
  assert.equal(longer.cutAtMs, long.cutAtMs);
});

test('429s at the same time with the same Retry-After are one change', () => {
  const first = noteLimited(null, { measuredRate: 10, retryAfterMs: 2000 }, startMs + 1);
  for (let ms = 2; ms <= 100; ms += 1)
    assert.equal(noteLimited(first, { measuredRate: 10, retryAfterMs: 2000 }, startMs + ms), first);
});

test('the rest of the window of the first 429 counts as spent', () => {
  const throttle = noteLimited(null, { measuredRate: 40 }, startMs + 300);
  assert.equal(takeTokens(throttle, 1, startMs + 999).tokens, 0);
  assert.equal(takeTokens(throttle, 1, startMs + 1000).tokens, 20);
});

test('replicas share a window, and the last gets what is left', () => {
  let throttle: Throttle | null = noteLimited(null, { measuredRate: 20 }, startMs);
  const tokens = [1, 2, 3, 4].map(() => {
    const taking = takeTokens(throttle, 3, startMs + 1000);
    throttle = taking.throttle;
    return taking.tokens;
  });
  assert.deepEqual(tokens, [4, 4, 2, 0]);
});

test('without a throttle there is no limit, and a recovered one is dropped when tokens are taken', () => {
  assert.deepEqual(takeTokens(null, 2, startMs), { throttle: null, tokens: Infinity });
  const throttle = noteLimited(null, { measuredRate: 20 }, startMs);
  assert.deepEqual(takeTokens(throttle, 2, startMs + 11_000), { throttle: null, tokens: Infinity });
});

test('tokens that are spent on demand come from the same windows', () => {
  const throttle = noteLimited(null, { measuredRate: 20 }, startMs);
  assert.equal(tokensLeft(throttle, startMs + 1000), 10);
  const some = spendTokens(throttle, 7, startMs + 1000);
  assert.equal(tokensLeft(some, startMs + 1999), 3);
  assert.equal(takeTokens(some, 1, startMs + 1999).tokens, 3);
  assert.equal(spendTokens(some, 0, startMs + 1999), some);
  assert.equal(tokensLeft(some, startMs + 2000), 11);
  assert.deepEqual(
    [tokensLeft(some, startMs + 60_000), spendTokens(some, 5, startMs + 60_000)],
    [Infinity, null],
  );
  assert.equal(
    tokensLeft(noteLimited(null, { measuredRate: 9, retryAfterMs: 5000 }, startMs), startMs + 4000),
    0,
  );
});

const event = fc.oneof(
  fc.record({
    kind: fc.constant('limited' as const),
    measuredRate: fc.double({ min: 0, max: 5000, noNaN: true }),
    retryAfterMs: fc.option(fc.nat(2 * hourMs), { nil: undefined, freq: 4 }),
  }),
  fc.record({ kind: fc.constant('take' as const), replicas: fc.integer({ min: 0, max: 9 }) }),
  fc.record({ kind: fc.constant('wait' as const), ms: fc.oneof(fc.nat(300), fc.nat(3000), fc.nat(30_000)) }),
);

test('the rate always stays between 1 and the peak, is cut at most once a second and rises in between', () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 80 }), (events) => {
      let nowMs = startMs;
      let throttle: Throttle | null = null;
      for (const one of events) {
        const before: Throttle | null = throttle;
        const rateBefore = rateAt(before, nowMs);
        if (one.kind === 'wait') {
          nowMs += one.ms;
          const risen = rateAt(throttle, nowMs);
          if (rateBefore !== null && risen !== null) assert.ok(risen >= rateBefore);
          if (rateBefore === null) assert.equal(risen, null);
        } else if (one.kind === 'take') {
          throttle = takeTokens(throttle, one.replicas, nowMs).throttle;
          assert.equal(rateAt(throttle, nowMs), rateBefore);
        } else {
          throttle = noteLimited(throttle, one, nowMs);
          assert.ok((throttle.holdUntilMs ?? 0) >= (before?.holdUntilMs ?? 0));
          assert.ok(blockedForMs(throttle, nowMs) <= Math.max(blockedForMs(before, nowMs), hourMs));
          if (rateBefore !== null && before !== null && throttle.cutAtMs !== before.cutAtMs)
            assert.ok(nowMs - before.cutAtMs >= 1000 && throttle.rate <= rateBefore);
          if (rateBefore !== null && before?.cutAtMs === throttle.cutAtMs)
            assert.equal(rateAt(throttle, nowMs), rateBefore);
        }
        const rate = rateAt(throttle, nowMs);
        if (rate !== null && throttle !== null) assert.ok(rate >= 1 && rate <= throttle.peak);
      }
    }),
  );
});

test('no window gives more tokens than its rate, and none that is not blocked gives nothing', () => {
  fc.assert(
    fc.property(
      fc.array(event, { maxLength: 120 }),
      fc.double({ min: 1, max: 60, noNaN: true }),
      (events, peak) => {
        let nowMs = startMs;
        let throttle: Throttle | null = noteLimited(null, { measuredRate: peak }, nowMs);
        const given = new Map<number, number>();
        for (const one of events) {
          if (one.kind === 'wait') nowMs += one.ms;
          if (one.kind === 'limited') throttle = noteLimited(throttle, one, nowMs);
          if (one.kind !== 'take') continue;
          const rate = rateAt(throttle, nowMs);
          const window = windowAt(nowMs);
          const cutAtMs = throttle?.cutAtMs ?? 0;
          const isBlocked = blockedForMs(throttle, nowMs) > 0;
          const taking = takeTokens(throttle, one.replicas, nowMs);
          throttle = taking.throttle;
          if (rate === null) {
            given.clear();
            continue;
          }
          const sofar = given.get(window) ?? 0;
          if (taking.tokens > 0) assert.ok(sofar + taking.tokens <= rate && !isBlocked);
          if (!isBlocked && sofar === 0 && windowAt(cutAtMs) !== window) assert.ok(taking.tokens >= 1);
          given.set(window, sofar + taking.tokens);
        }
      },
    ),
  );
});

test('a target that never answers 429 again is unthrottled after at most twenty quiet seconds', () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0, max: 1e6, noNaN: true }),
      fc.array(fc.integer({ min: 1000, max: 5000 }), { maxLength: 30 }),
      (measured, gaps) => {
        let nowMs = startMs;
        let throttle = noteLimited(null, { measuredRate: measured }, nowMs);
        for (const gap of gaps) throttle = noteLimited(throttle, { measuredRate: measured }, (nowMs += gap));
        assert.equal(rateAt(throttle, nowMs + 21_000), null);
      },
    ),
  );
});

test('windows are the whole seconds of the clock', () => {
  assert.deepEqual([windowAt(startMs + 1999), windowEndsInMs(startMs + 1999)], [startMs + 1000, 1]);
  assert.equal(windowEndsInMs(startMs), 1000);
});

test('the meter measures even traffic as it is, a burst in full, and nothing after a second of silence', () => {
  let even: Meter = emptyMeter;
  for (let ms = 0; ms < 2500; ms += 10) even = countSent(even, 1, 7000 + ms);
  assert.ok(Math.abs(measuredRate(even, 9500) - 100) <= 1, String(measuredRate(even, 9500)));
  const burst = countSent(countSent(emptyMeter, 30, 7100), 2, 7101);
  assert.equal(measuredRate(burst, 7101), 32);
  assert.equal(measuredRate(burst, 9001), 0);
});
