import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import {
  advance,
  groupKey,
  isNotifiable,
  MAX_SAMPLES,
  tallyEvents,
  type Group,
  type NotifyEvent,
  type Notice,
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

test('the first event is sent at once, and those within the cooldown are pending', () => {
  const first = advance(undefined, tallyOf(eventAt(1000)), { nowMs: 1000, cooldownMs });
  assert.deepEqual([first.notice?.count, first.notice?.isSummary], [1, false]);
  const second = advance(first.group, tallyOf(eventAt(2000, { itemId: '8' })), { nowMs: 2000, cooldownMs });
  assert.equal(second.notice, undefined);
  assert.equal(second.group?.pending?.count, 1);
  assert.equal(second.group?.notifiedAtMs, 1000, 'pending events do not prolong the cooldown');
});

test('pending events are sent as one summary when the cooldown ends, which starts the next one', () => {
  const pending = tallyOf(eventAt(2000), eventAt(1500, { itemId: '8' }));
  const end = 1000 + cooldownMs;
  assert.equal(
    advance({ notifiedAtMs: 1000, pending }, undefined, { nowMs: end - 1, cooldownMs }).notice,
    undefined,
  );
  const { group, notice } = advance({ notifiedAtMs: 1000, pending }, undefined, { nowMs: end, cooldownMs });
  assert.deepEqual(notice, { ...pending, isSummary: true });
  assert.deepEqual([notice?.firstAtMs, notice?.lastAtMs], [1500, 2000]);
  assert.deepEqual(group, { notifiedAtMs: end, pending: undefined });
});

test('a cooldown without pending events ends the group, and the next event is sent at once', () => {
  const nowMs = 1000 + cooldownMs;
  const end = advance({ notifiedAtMs: 1000, pending: undefined }, undefined, { nowMs, cooldownMs });
  assert.deepEqual(end, { group: undefined, notice: undefined });
  const next = advance({ notifiedAtMs: 1000, pending: undefined }, tallyOf(eventAt(nowMs)), {
    nowMs,
    cooldownMs,
  });
  assert.equal(next.notice?.isSummary, false);
});

test('events that come together are sent together, with the first few as samples', () => {
  const events = Array.from({ length: 1000 }, (_, i) => eventAt(i, { itemId: String(i) }));
  const { notice } = advance(undefined, tallyOf(...events), { nowMs: 1000, cooldownMs });
  assert.equal(notice?.count, 1000);
  assert.deepEqual(
    notice?.samples.map(({ id }) => id),
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

test('two groups never have the same key, whatever their names contain', () => {
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

test('internal orders never notify anybody', () => {
  assert.equal(isNotifiable({ slice: 'outbox', kind: 'dead', subject: '_notify_ops' }), false);
  assert.equal(isNotifiable({ slice: 'outbox', kind: 'late_success', subject: '_saga_events' }), false);
  assert.equal(isNotifiable({ slice: 'outbox', kind: 'dead', subject: 'broker_1' }), true);
  assert.equal(isNotifiable({ slice: 'dlq', kind: 'dead', subject: '_internal.topic' }), true);
});

type NoticeAt = Notice & Readonly<{ atMs: number }>;

/** Lets time pass in steps; in some of them events come. */
function live(steps: readonly Readonly<{ passMs: number; events: number }>[], cooldown: number) {
  let group: Group | undefined;
  let nowMs = 0;
  let came = 0;
  const notice: NoticeAt[] = [];
  for (const { passMs, events } of steps) {
    nowMs += passMs;
    const batch = Array.from({ length: events }, () => eventAt(nowMs, { itemId: String(came++) }));
    const after = advance(group, tallyEvents(batch)[0]?.tally, { nowMs, cooldownMs: cooldown });
    group = after.group;
    if (after.notice !== undefined) notice.push({ ...after.notice, atMs: nowMs });
    // At no time is an event pending for longer than a cooldown.
    if (group?.pending !== undefined) assert.ok(nowMs < group.notifiedAtMs + cooldown);
  }
  return { group, nowMs, came, notice };
}

const steps = fc.array(
  fc.record({ passMs: fc.integer({ min: 0, max: 400 }), events: fc.integer({ min: 0, max: 30 }) }),
  { maxLength: 60 },
);

test('every event is counted once: in one message, or as pending', () => {
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 1000 }), (story, cooldown) => {
      const { group, came, notice } = live(story, cooldown);
      const counted = notice.reduce((sum, { count }) => sum + count, group?.pending?.count ?? 0);
      assert.equal(counted, came);
    }),
  );
});

test('between two messages of a group there is at least a cooldown', () => {
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 1000 }), (story, cooldown) => {
      const { notice } = live(story, cooldown);
      notice.slice(1).forEach(({ atMs }, i) => assert.ok(atMs - (notice[i]?.atMs ?? 0) >= cooldown));
    }),
  );
});

test('without new events, everything is sent within a cooldown and no state stays behind', () => {
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 1000 }), (story, cooldown) => {
      const quiet = [
        { passMs: cooldown, events: 0 },
        { passMs: cooldown, events: 0 },
      ];
      const { group, came, notice } = live([...story, ...quiet], cooldown);
      assert.equal(group, undefined);
      assert.equal(
        notice.reduce((sum, { count }) => sum + count, 0),
        came,
      );
    }),
  );
});

test('a message has the first few items as samples, and the time of the first and last event', () => {
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 1000 }), (story, cooldown) => {
      let before = 0;
      for (const { count, samples, firstAtMs, lastAtMs, atMs } of live(story, cooldown).notice) {
        assert.equal(samples.length, Math.min(count, MAX_SAMPLES));
        assert.deepEqual(
          samples.map(({ id }) => id),
          samples.map((_, i) => String(before + i)),
        );
        assert.ok(firstAtMs <= lastAtMs && lastAtMs <= atMs);
        before += count;
      }
    }),
  );
});
