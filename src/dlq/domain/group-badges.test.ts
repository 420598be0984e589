import assert from 'node:assert/strict';
import { test } from 'node:test';
import { badgesOf, trendOf, type GroupHour } from './group-badges.ts';

const hour = (age: number, arrived: number, opened = arrived): GroupHour => ({ age, arrived, opened });
const old = { open: 0, firstSeenHoursAgo: 1000, hours: [] };

test('the trend has 24 hours, the one under way last', () => {
  const trend = trendOf([hour(0, 3), hour(0, 1), hour(23, 7), hour(24, 9), hour(-1, 9)]);
  assert.equal(trend.length, 24);
  assert.deepEqual([trend[0], trend[22], trend[23]], [7, 0, 4]);
});

test('a group is new within an hour of its first failure', () => {
  assert.deepEqual(badgesOf({ ...old, firstSeenHoursAgo: 0.5, open: 1, hours: [hour(0, 1)] }), ['new']);
  assert.deepEqual(badgesOf({ ...old, firstSeenHoursAgo: 1.5, open: 1, hours: [hour(1, 1)] }), []);
});

test('a group is back if a whole hour passed without an open message', () => {
  assert.deepEqual(badgesOf({ ...old, open: 1, hours: [hour(0, 1)] }), ['back']);
  assert.deepEqual(badgesOf({ ...old, open: 1, hours: [hour(5, 1)] }), ['back']);
  assert.deepEqual(badgesOf({ ...old, open: 0, hours: [hour(0, 1, 0)] }), [], 'nothing is open');
  assert.deepEqual(badgesOf({ ...old, open: 3, hours: [hour(0, 1)] }), [], 'two were open before');
  assert.deepEqual(
    badgesOf({ ...old, open: 1, firstSeenHoursAgo: 2, hours: [hour(1, 1)] }),
    [],
    'never seen before',
  );
  const busy = Array.from({ length: 24 }, (_, age) => hour(age, 1, age === 0 ? 1 : 0));
  assert.deepEqual(badgesOf({ ...old, open: 1, hours: busy }), [], 'failures were resolved in the same hour');
});

test('a group is growing from ten failures an hour, at twice the mean of the hours before', () => {
  const steady = Array.from({ length: 22 }, (_, i) => hour(i + 2, 10, 0));
  assert.deepEqual(badgesOf({ ...old, hours: [hour(0, 10, 0)] }), ['growing']);
  assert.deepEqual(badgesOf({ ...old, hours: [hour(1, 10, 0)] }), ['growing']);
  assert.deepEqual(badgesOf({ ...old, hours: [hour(0, 9, 0)] }), []);
  assert.deepEqual(badgesOf({ ...old, hours: [...steady, hour(1, 10, 0), hour(0, 19, 0)] }), []);
  assert.deepEqual(badgesOf({ ...old, hours: [...steady, hour(1, 10, 0), hour(0, 20, 0)] }), ['growing']);
});
