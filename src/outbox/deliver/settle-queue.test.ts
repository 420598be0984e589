import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../kernel/clock.ts';
import type { EndedAttempt } from './settle-orders.ts';
import { createSettleQueue } from './settle-queue.ts';

function attemptOf(id: bigint): EndedAttempt {
  const order: EndedAttempt['order'] = {
    id,
    idempotencyKey: `order-${id}`,
    request: '{}',
    orderingKey: null,
    traceId: null,
    traceparent: null,
    destination: 'broker',
    lease: { owner: 'worker-1', epoch: 1n, endsAtMs: systemClock.monotonicMs() + 60_000 },
    retryCount: 0,
    ageMs: null,
    claimedAtMs: 0,
    createdForMs: 0,
    inDoubt: false,
    was: { status: 'queued', firstSentAt: null },
  };
  const answer = { status: 200, digest: 'sha256:0', outsideId: null };
  return { order, settlement: { to: 'sent', answer, isConflict: false } };
}

test('attempts are settled in batches of 500, and each gets its own result', async () => {
  const sizes: number[] = [];
  const queue = createSettleQueue(async (attempts) => {
    sizes.push(attempts.length);
    // In another order, and without the first one: it was stale.
    return attempts.toReversed().flatMap(({ order: { id } }) => (id === 1n ? [] : [{ id, status: 'sent' }]));
  }, systemClock);
  const ids = Array.from({ length: 600 }, (_, index) => BigInt(index + 1));
  const results = await Promise.all(ids.map((id) => queue.settle(attemptOf(id))));
  assert.deepEqual(sizes, [500, 100]);
  assert.deepEqual(
    results.map(({ id, status }) => (status === null ? `${id} stale` : String(id))),
    ids.map((id) => (id === 1n ? '1 stale' : String(id))),
  );
});

test('settling is retried until a minute after the last lease has expired', async (t) => {
  const timeouts: number[] = [];
  t.mock.method(AbortSignal, 'timeout', (ms: number) => {
    timeouts.push(ms);
    return new AbortController().signal;
  });
  const clock = { ...systemClock, monotonicMs: () => 1000 };
  const queue = createSettleQueue(async () => [], clock);
  const leasedUntil = (endsAtMs: number): EndedAttempt => {
    const { order, settlement } = attemptOf(1n);
    return { order: { ...order, lease: { ...order.lease, endsAtMs } }, settlement };
  };
  await Promise.all([queue.settle(leasedUntil(500)), queue.settle(leasedUntil(3000))]);
  await queue.settle(leasedUntil(500));
  assert.deepEqual(timeouts, [62_000, 60_000]);
});

test('an attempt that could not be stored rejects', async () => {
  const queue = createSettleQueue(() => Promise.reject(new Error('no database')), systemClock);
  await assert.rejects(queue.settle(attemptOf(1n)), /no database/);
});
