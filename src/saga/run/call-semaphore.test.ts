import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCallSemaphore, type CallSemaphoreOptions } from './call-semaphore.ts';

function semaphoreAt(more: Partial<CallSemaphoreOptions> = {}) {
  const time = { ms: 0 };
  const clock = { now: () => new Date(time.ms), monotonicMs: () => time.ms };
  return {
    time,
    semaphore: createCallSemaphore({
      maxInFlight: 100,
      maxInFlightTo: () => 2,
      maxWaiting: 3,
      clock,
      ...more,
    }),
  };
}

test('calls are limited per service and per process', () => {
  const { semaphore } = semaphoreAt({ maxInFlight: 3 });
  assert.ok(semaphore.tryAcquire('shop'));
  assert.ok(semaphore.tryAcquire('shop'));
  assert.equal(semaphore.tryAcquire('shop'), null);
  const other = semaphore.tryAcquire('bank');
  assert.equal(semaphore.tryAcquire('bank'), null, 'the limit of the process is reached');
  other?.release();
  other?.release();
  assert.equal(semaphore.inFlight(), 2, 'a permit is released once');
});

test('a free permit goes to the saga that has waited longest for its service', async () => {
  const { semaphore } = semaphoreAt();
  const [first] = [semaphore.tryAcquire('shop'), semaphore.tryAcquire('shop')];
  const waiting = [semaphore.acquire('shop'), semaphore.acquire('shop')];
  first?.release();
  const next = await waiting[0];
  assert.equal(next?.service, 'shop');
  next?.release();
  assert.ok(await waiting[1]);
});

test('a saga with a permit goes before those that wait, also to another service', async () => {
  const { semaphore } = semaphoreAt({ maxInFlight: 3 });
  const [first, second] = [semaphore.tryAcquire('shop'), semaphore.tryAcquire('shop')];
  const waiting = semaphore.acquire('shop');
  const again = first?.exchange('shop');
  assert.equal(again?.service, 'shop');
  assert.equal(semaphore.inFlight(), 2);
  const elsewhere = second?.exchange('bank');
  assert.equal(elsewhere?.service, 'bank');
  assert.ok(await waiting, 'the freed permit goes to a waiting saga');
  assert.equal(semaphore.inFlight(), 3);
  assert.equal(elsewhere?.exchange('shop'), null, 'none is free');
  assert.equal(semaphore.inFlight(), 2);
});

test('after half a second a waiting saga goes before those with a permit', async () => {
  const { semaphore, time } = semaphoreAt();
  let [first] = [semaphore.tryAcquire('shop'), semaphore.tryAcquire('shop')];
  const waiting = semaphore.acquire('shop');
  time.ms = 499;
  first = first?.exchange('shop') ?? null;
  assert.ok(first);
  time.ms = 501;
  assert.equal(first.exchange('shop'), null);
  assert.ok(await waiting);
});

test('each exchange measures the call time anew', () => {
  const { semaphore, time } = semaphoreAt();
  let permit = semaphore.tryAcquire('shop');
  for (let call = 1; call <= 100; call += 1) {
    time.ms = call * 500;
    permit = permit?.exchange('shop') ?? null;
  }
  assert.equal(semaphore.backoffMs('shop'), 1000, 'each call took half a second');
});

test('if too many wait, the next saga is rejected; at a stop all are', async () => {
  const { semaphore } = semaphoreAt();
  semaphore.tryAcquire('shop');
  semaphore.tryAcquire('shop');
  const waiting = Array.from({ length: 3 }, () => semaphore.acquire('shop'));
  assert.equal(await semaphore.acquire('shop'), null);
  semaphore.rejectWaiting();
  assert.deepEqual(await Promise.all(waiting), [null, null, null]);
});

test('a rejected saga backs off for as long as those before it need, within limits', async () => {
  const { semaphore, time } = semaphoreAt();
  const [first] = [semaphore.tryAcquire('shop'), semaphore.tryAcquire('shop')];
  time.ms = 10;
  first?.release();
  semaphore.tryAcquire('shop');
  assert.equal(semaphore.backoffMs('shop'), 1000, 'its calls are short');
  for (const [afterMs, pauseMs] of [
    [5000, 5000],
    [20_000, 20_000],
    [600_000, 30_000],
  ] as const) {
    time.ms = 10 + afterMs;
    assert.equal(semaphore.backoffMs('shop'), pauseMs, `no call has returned for ${afterMs} ms`);
  }
  assert.equal(semaphore.backoffMs('bank'), 1000, 'another service is not affected');
});

test('few sagas wait for a slow service', async () => {
  const { semaphore, time } = semaphoreAt({ maxInFlightTo: () => 8, maxWaiting: 100 });
  const taken = Array.from({ length: 8 }, () => semaphore.tryAcquire('shop'));
  time.ms = 5000;
  const waiting = [semaphore.acquire('shop'), semaphore.acquire('shop')];
  assert.equal(await semaphore.acquire('shop'), null);
  taken[0]?.release();
  assert.ok(await waiting[0]);
  semaphore.rejectWaiting();
  assert.equal(await waiting[1], null);
});
