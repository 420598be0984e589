import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import {
  advance,
  groupKey,
  isTellable,
  MAX_SAMPLES,
  tallyEvents,
  type Group,
  type NotifyEvent,
  type Told,
} from './grouping.ts';

const cooldownMs = 300_000;

function eventAt(atMs: number, more: Partial<NotifyEvent> = {}): NotifyEvent {
  return {
    slice: 'outbox',
    kind: 'dead',
    subject: 'broker',
    itemId: '7',
    summary: 'HTTP 400',
    atMs,
    ...more,
  };
}

function tallyOf(...events: readonly NotifyEvent[]) {
  return tallyEvents(events)[0]?.tally ?? assert.fail('no events');
}

test('the first is told at once, and what comes within the cool-down is held', () => {
  const first = advance(undefined, tallyOf(eventAt(1000)), { nowMs: 1000, cooldownMs });
  assert.deepEqual([first.told?.count, first.told?.isSummary], [1, false]);
  const second = advance(first.group, tallyOf(eventAt(2000, { itemId: '8' })), { nowMs: 2000, cooldownMs });
  assert.equal(second.told, undefined);
  assert.equal(second.group?.held?.count, 1);
  assert.equal(second.group?.toldAtMs, 1000, 'what is held does not prolong the cool-down');
});

test('what was held is told as one summary when the cool-down ends, and the next one begins', () => {
  const held = tallyOf(eventAt(2000), eventAt(1500, { itemId: '8' }));
  const end = 1000 + cooldownMs;
  assert.equal(advance({ toldAtMs: 1000, held }, undefined, { nowMs: end - 1, cooldownMs }).told, undefined);
  const { group, told } = advance({ toldAtMs: 1000, held }, undefined, { nowMs: end, cooldownMs });
  assert.deepEqual(told, { ...held, isSummary: true });
  assert.deepEqual([told?.firstAtMs, told?.lastAtMs], [1500, 2000]);
  assert.deepEqual(group, { toldAtMs: end, held: undefined });
});

test('a cool-down that ends with nothing held ends the group, and the next event is a first one', () => {
  const nowMs = 1000 + cooldownMs;
  const end = advance({ toldAtMs: 1000, held: undefined }, undefined, { nowMs, cooldownMs });
  assert.deepEqual(end, { group: undefined, told: undefined });
  const next = advance({ toldAtMs: 1000, held: undefined }, tallyOf(eventAt(nowMs)), { nowMs, cooldownMs });
  assert.equal(next.told?.isSummary, false);
});

test('what comes together is told together, with the first few by name', () => {
  const events = Array.from({ length: 1000 }, (_, i) => eventAt(i, { itemId: String(i) }));
  const { told } = advance(undefined, tallyOf(...events), { nowMs: 1000, cooldownMs });
  assert.equal(told?.count, 1000);
  assert.deepEqual(
    told?.samples.map(({ id }) => id),
    Array.from({ length: MAX_SAMPLES }, (_, i) => String(i)),
  );
});

test('events are grouped by slice, kind and subject', () => {
  const events = [
    eventAt(1),
    eventAt(2, { subject: 'warehouse' }),
    eventAt(3, { kind: 'late_success' }),
    eventAt(4, { slice: 'jobs' }),
    eventAt(5),
  ];
  assert.deepEqual(
    tallyEvents(events).map(({ name, tally }) => `${name.slice} ${name.kind} ${name.subject} ${tally.count}`),
    ['outbox dead broker 2', 'outbox dead warehouse 1', 'outbox late_success broker 1', 'jobs dead broker 1'],
  );
});

test('two groups never have the same key, whatever stands in their names', () => {
  const name = fc.record({ slice: fc.string(), kind: fc.string(), subject: fc.string() });
  fc.assert(
    fc.property(name, name, (one, other) => {
      const isSame = one.slice === other.slice && one.kind === other.kind && one.subject === other.subject;
      assert.equal(groupKey(one) === groupKey(other), isSame);
    }),
  );
  assert.notEqual(
    groupKey({ slice: 'a', kind: 'b","c', subject: '' }),
    groupKey({ slice: 'a', kind: 'b', subject: 'c' }),
  );
});

test('orders of the system itself are never told of', () => {
  assert.equal(isTellable({ slice: 'outbox', kind: 'dead', subject: '_notify_ops' }), false);
  assert.equal(isTellable({ slice: 'outbox', kind: 'late_success', subject: '_saga_events' }), false);
  assert.equal(isTellable({ slice: 'outbox', kind: 'dead', subject: 'broker_1' }), true);
  assert.equal(isTellable({ slice: 'dlq', kind: 'dead', subject: '_internal.topic' }), true);
});

type ToldThen = Told & Readonly<{ atMs: number }>;

/** Lets time pass in steps; in some of them events come. */
function live(steps: readonly Readonly<{ passMs: number; events: number }>[], cooldown: number) {
  let group: Group | undefined;
  let nowMs = 0;
  let came = 0;
  const told: ToldThen[] = [];
  for (const { passMs, events } of steps) {
    nowMs += passMs;
    const batch = Array.from({ length: events }, () => eventAt(nowMs, { itemId: String(came++) }));
    const after = advance(group, tallyEvents(batch)[0]?.tally, { nowMs, cooldownMs: cooldown });
    group = after.group;
    if (after.told !== undefined) told.push({ ...after.told, atMs: nowMs });
    // Whenever somebody looks, nothing is held that has been held for longer than a cool-down.
    if (group?.held !== undefined) assert.ok(nowMs < group.toldAtMs + cooldown);
  }
  return { group, nowMs, came, told };
}

const steps = fc.array(
  fc.record({ passMs: fc.integer({ min: 0, max: 400 }), events: fc.integer({ min: 0, max: 30 }) }),
  { maxLength: 60 },
);

test('every event is counted once: in one message, or in what is held', () => {
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 1000 }), (story, cooldown) => {
      const { group, came, told } = live(story, cooldown);
      const counted = told.reduce((sum, { count }) => sum + count, group?.held?.count ?? 0);
      assert.equal(counted, came);
    }),
  );
});

test('between two messages of a group there is at least a cool-down', () => {
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 1000 }), (story, cooldown) => {
      const { told } = live(story, cooldown);
      told.slice(1).forEach(({ atMs }, i) => assert.ok(atMs - (told[i]?.atMs ?? 0) >= cooldown));
    }),
  );
});

test('when nothing comes any more, all is told a cool-down later and no state stays behind', () => {
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 1000 }), (story, cooldown) => {
      const quiet = [
        { passMs: cooldown, events: 0 },
        { passMs: cooldown, events: 0 },
      ];
      const { group, came, told } = live([...story, ...quiet], cooldown);
      assert.equal(group, undefined);
      assert.equal(
        told.reduce((sum, { count }) => sum + count, 0),
        came,
      );
    }),
  );
});

test('a message names the first few, and says from when to when', () => {
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 1000 }), (story, cooldown) => {
      let told = 0;
      for (const { count, samples, firstAtMs, lastAtMs, atMs } of live(story, cooldown).told) {
        assert.equal(samples.length, Math.min(count, MAX_SAMPLES));
        assert.deepEqual(
          samples.map(({ id }) => id),
          samples.map((_, i) => String(told + i)),
        );
        assert.ok(firstAtMs <= lastAtMs && lastAtMs <= atMs);
        told += count;
      }
    }),
  );
});
