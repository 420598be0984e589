import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { decide, openSchedule, untilNextMs } from './cron-schedule.ts';

const zones = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'America/St_Johns',
  'Asia/Kathmandu',
  'Australia/Lord_Howe',
  'Pacific/Apia',
] as const;

/** Around these instants one of the zones changes to or from daylight saving time. */
const changes = [
  '2026-03-29T01:00:00Z',
  '2026-10-25T01:00:00Z',
  '2026-03-08T07:00:00Z',
  '2026-11-01T06:00:00Z',
  '2026-04-04T15:00:00Z',
  '2026-10-03T15:30:00Z',
].map((text) => Date.parse(text));

const hourMs = 3_600_000;

const instant = fc
  .oneof(
    fc.integer({ min: Date.parse('2020-01-01'), max: Date.parse('2035-01-01') }),
    fc
      .tuple(fc.constantFrom(...changes), fc.integer({ min: -2 * hourMs, max: 3 * hourMs }))
      .map(([change, offset]) => change + offset),
  )
  .map((ms) => new Date(ms));

function field(min: number, max: number): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 3, arbitrary: fc.constant('*') },
    fc.integer({ min, max }).map(String),
    fc.integer({ min: 2, max: Math.min(max, 20) }).map((step) => `*/${step}`),
    fc.uniqueArray(fc.integer({ min, max }), { minLength: 1, maxLength: 3 }).map((list) => list.join(',')),
  );
}

const schedule = fc
  .tuple(field(0, 59), field(0, 23), field(1, 28), field(1, 12), field(0, 6))
  .map((fields) => fields.join(' '));

test('the latest tick is not after now, and the next one after it is', () => {
  fc.assert(
    fc.property(schedule, fc.constantFrom(...zones), instant, (text, zone, now) => {
      const opened = openSchedule(text, zone);
      const [latest, next] = [opened.latest(now), opened.next(now)];
      assert.ok(latest !== null && next !== null);
      assert.ok(latest <= now && now < next);
      assert.deepEqual(opened.next(latest), next);
    }),
    { numRuns: 2000 },
  );
});

test('a fired tick is not after now, later than the last one, and the only one left', () => {
  fc.assert(
    fc.property(schedule, fc.constantFrom(...zones), instant, instant, (text, zone, last, now) => {
      const opened = openSchedule(text, zone);
      const decision = decide(opened, last, now);
      if (decision.does === 'fire') {
        assert.ok(decision.tickAt <= now && decision.tickAt > last);
        assert.deepEqual(decide(opened, decision.tickAt, now), { does: 'wait' });
      } else {
        const next = opened.next(last);
        assert.ok(next !== null && next > now);
      }
    }),
    { numRuns: 2000 },
  );
});

test('rounds at random times fire each tick at most once, in order, and never miss the last one', () => {
  const gaps = fc.array(fc.integer({ min: -90_000, max: 400_000 }), { maxLength: 30 });
  fc.assert(
    fc.property(schedule, fc.constantFrom(...zones), instant, gaps, (text, zone, begin, steps) => {
      const opened = openSchedule(text, zone);
      const fired: Date[] = [];
      let [last, now, latestNow] = [begin, begin, begin];
      for (const step of steps) {
        now = new Date(now.getTime() + step);
        latestNow = now > latestNow ? now : latestNow;
        const decision = decide(opened, last, now);
        if (decision.does !== 'fire') continue;
        fired.push(decision.tickAt);
        last = decision.tickAt;
      }
      for (const [index, tick] of fired.entries())
        assert.ok(index === 0 || tick > (fired[index - 1] ?? tick));
      const due = opened.latest(latestNow);
      if (due !== null && due > begin) assert.deepEqual(fired.at(-1), due);
    }),
    { numRuns: 1000 },
  );
});

test('no tick before a schedule was first seen is fired', () => {
  const hourly = openSchedule('0 * * * *', 'UTC');
  assert.deepEqual(decide(hourly, null, new Date('2026-05-01T10:00:00Z')), { does: 'start' });
  const known = new Date('2026-05-01T10:00:00Z');
  assert.deepEqual(decide(hourly, known, new Date('2026-05-01T10:59:59.999Z')), { does: 'wait' });
  assert.deepEqual(decide(hourly, known, new Date('2026-05-01T11:00:00Z')), {
    does: 'fire',
    tickAt: new Date('2026-05-01T11:00:00Z'),
  });
});

test('after a week without a round only the latest tick is fired', () => {
  const decision = decide(
    openSchedule('*/5 * * * *', 'UTC'),
    new Date('2026-05-01T10:00:00Z'),
    new Date('2026-05-08T10:07:00Z'),
  );
  assert.deepEqual(decision, { does: 'fire', tickAt: new Date('2026-05-08T10:05:00Z') });
});

test('a tick in a skipped hour comes right after it, and a tick in a repeated hour comes once', () => {
  const nightly = openSchedule('30 2 * * *', 'Europe/Berlin');
  assert.deepEqual(nightly.latest(new Date('2026-03-29T12:00:00Z')), new Date('2026-03-29T01:00:00Z'));
  assert.deepEqual(nightly.latest(new Date('2026-10-25T12:00:00Z')), new Date('2026-10-25T00:30:00Z'));
  const often = openSchedule('*/30 * * * *', 'Europe/Berlin');
  assert.deepEqual(often.next(new Date('2026-10-25T00:30:00Z')), new Date('2026-10-25T01:00:00Z'));
});

test('the wait ends with the first tick of any schedule, and at its limit', () => {
  const now = new Date('2026-05-01T10:00:20.500Z');
  const [hourly, often] = [openSchedule('0 * * * *', 'UTC'), openSchedule('* * * * *', 'UTC')];
  assert.equal(untilNextMs([hourly, often], now, 60_000), 39_500);
  assert.equal(untilNextMs([hourly], now, 60_000), 60_000);
  assert.equal(untilNextMs([], now, 60_000), 60_000);
});
