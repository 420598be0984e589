import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  extendStreak,
  failProbe,
  isOutage,
  isProbeDue,
  noStreak,
  returnProbe,
  startProbing,
  takeProbe,
  type Streak,
} from './circuit.ts';

const streakOf = (...failures: readonly (readonly [id: string, atMs: number])[]): Streak<string> =>
  failures.reduce<Streak<string>>((streak, [id, atMs]) => extendStreak(streak, id, atMs), noStreak);

test('a streak counts failures, different items and the time of the first failure', () => {
  const streak = streakOf(['a', 5], ['b', 6], ['a', 7]);
  assert.deepEqual(streak, { failures: 3, itemIds: ['a', 'b'], firstAtMs: 5 });
});

test('a streak keeps no more item ids than the rules need', () => {
  assert.deepEqual(streakOf(['a', 0], ['b', 0], ['c', 0], ['d', 0]).itemIds, ['a', 'b', 'c']);
});

test('a streak is an outage when it meets every number of one of the rules', () => {
  const rules = [
    { failures: 3, items: 2 },
    { failures: 4, items: 1, overMs: 60_000 },
  ];
  assert.equal(isOutage(streakOf(['a', 0], ['b', 0]), rules, 0), false);
  assert.equal(isOutage(streakOf(['a', 0], ['b', 0], ['a', 0]), rules, 0), true);
  const alone = streakOf(['a', 1], ['a', 1], ['a', 1], ['a', 1]);
  assert.equal(isOutage(alone, rules, 60_000), false);
  assert.equal(isOutage(alone, rules, 60_001), true);
});

test('one probe at a time: the taken one moves the next away for its lease', () => {
  const open = startProbing({ initialMs: 1000, maxMs: 5000 }, 100);
  assert.equal(isProbeDue(open, 1099), false);
  assert.equal(isProbeDue(open, 1100), true);
  assert.equal(takeProbe(open, 1100, 30_000).nextProbeAtMs, 31_100);
  assert.equal(takeProbe(open, 1100, 10).nextProbeAtMs, 2100, 'never before its interval');
});

test('failed probes double the interval up to the longest; an unsent one keeps it', () => {
  const timing = { initialMs: 1000, maxMs: 5000 };
  let circuit = startProbing(timing, 0);
  const intervals = [1, 2, 3, 4].map(() => (circuit = failProbe(circuit, 0, timing)).intervalMs);
  assert.deepEqual(intervals, [2000, 4000, 5000, 5000]);
  assert.deepEqual(returnProbe(circuit, 10), { intervalMs: 5000, nextProbeAtMs: 5010 });
});
