import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCallSlots, type CallSlotOptions } from './call-slots.ts';

function slotsAt(more: Partial<CallSlotOptions> = {}) {
  const time = { ms: 0 };
  const clock = { now: () => new Date(time.ms), monotonicMs: () => time.ms };
  return { time, slots: createCallSlots({ most: 100, mostTo: () => 2, mostWaiting: 3, clock, ...more }) };
}

test('one service has no more slots than it may have, and all together no more than the process', () => {
  const { slots } = slotsAt({ most: 3 });
  assert.ok(slots.takeNow('shop'));
  assert.ok(slots.takeNow('shop'));
  assert.equal(slots.takeNow('shop'), null);
  const other = slots.takeNow('bank');
  assert.equal(slots.takeNow('bank'), null, 'the process has no more');
  other?.release();
  other?.release();
  assert.equal(slots.inFlight(), 2, 'a slot is given back once');
});

test('a slot that comes free goes to whoever has waited longest for its service', async () => {
  const { slots } = slotsAt();
  const [first] = [slots.takeNow('shop'), slots.takeNow('shop')];
  const waiting = [slots.take('shop'), slots.take('shop')];
  first?.release();
  const next = await waiting[0];
  assert.equal(next?.service, 'shop');
  next?.release();
  assert.ok(await waiting[1]);
});

test('who has a slot goes on before those who wait, also with another service', async () => {
  const { slots } = slotsAt({ most: 3 });
  const [first, second] = [slots.takeNow('shop'), slots.takeNow('shop')];
  const waiting = slots.take('shop');
  const again = first?.swapFor('shop');
  assert.equal(again?.service, 'shop');
  assert.equal(slots.inFlight(), 2);
  const elsewhere = second?.swapFor('bank');
  assert.equal(elsewhere?.service, 'bank');
  assert.ok(await waiting, 'what is left behind is for those who wait');
  assert.equal(slots.inFlight(), 3);
  assert.equal(elsewhere?.swapFor('shop'), null, 'there is none');
  assert.equal(slots.inFlight(), 2);
});

test('who has waited for long goes before those who go on', async () => {
  const { slots, time } = slotsAt();
  let [first] = [slots.takeNow('shop'), slots.takeNow('shop')];
  const waiting = slots.take('shop');
  time.ms = 499;
  first = first?.swapFor('shop') ?? null;
  assert.ok(first);
  time.ms = 501;
  assert.equal(first.swapFor('shop'), null);
  assert.ok(await waiting);
});

test('a swap begins a new measure of how long calls take', () => {
  const { slots, time } = slotsAt();
  let slot = slots.takeNow('shop');
  for (let call = 1; call <= 100; call += 1) {
    time.ms = call * 500;
    slot = slot?.swapFor('shop') ?? null;
  }
  assert.equal(slots.pauseMs('shop'), 1000, 'each call took half a second');
});

test('where as many wait as may, the next one is sent away; and at a stop all are', async () => {
  const { slots } = slotsAt();
  slots.takeNow('shop');
  slots.takeNow('shop');
  const waiting = Array.from({ length: 3 }, () => slots.take('shop'));
  assert.equal(await slots.take('shop'), null);
  slots.sendAway();
  assert.deepEqual(await Promise.all(waiting), [null, null, null]);
});

test('whoever is sent away stays away as long as those before it need, within bounds', async () => {
  const { slots, time } = slotsAt();
  const [first] = [slots.takeNow('shop'), slots.takeNow('shop')];
  time.ms = 10;
  first?.release();
  slots.takeNow('shop');
  assert.equal(slots.pauseMs('shop'), 1000, 'its calls are short');
  for (const [afterMs, pauseMs] of [
    [5000, 5000],
    [20_000, 20_000],
    [600_000, 30_000],
  ] as const) {
    time.ms = 10 + afterMs;
    assert.equal(slots.pauseMs('shop'), pauseMs, `nothing has come back for ${afterMs} ms`);
  }
  assert.equal(slots.pauseMs('bank'), 1000, 'another service has nothing to do with it');
});

test('for a slow service few wait', async () => {
  const { slots, time } = slotsAt({ mostTo: () => 8, mostWaiting: 100 });
  const taken = Array.from({ length: 8 }, () => slots.takeNow('shop'));
  time.ms = 5000;
  const waiting = [slots.take('shop'), slots.take('shop')];
  assert.equal(await slots.take('shop'), null);
  taken[0]?.release();
  assert.ok(await waiting[0]);
  slots.sendAway();
  assert.equal(await waiting[1], null);
});
