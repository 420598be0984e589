import assert from 'node:assert/strict';
import { setImmediate as nextTick } from 'node:timers/promises';
import { test } from 'node:test';
import { systemClock } from '../../kernel/clock.ts';
import type { Attempt, SettledAttempt } from './ports.ts';
import { createSettleQueue } from './settle-queue.ts';

/** A queue over a store that writes only when it is told to. */
function createScene() {
  const writes: Readonly<{ ids: readonly bigint[]; end(error?: Error): void }>[] = [];
  const queue = createSettleQueue(
    {
      settle: (attempts) =>
        new Promise((resolve, reject) => {
          const ids = attempts.map(({ order }) => order.id);
          const done = ids.map((id): SettledAttempt => ({ id, status: 'sent' }));
          writes.push({ ids, end: (error) => (error === undefined ? resolve(done) : reject(error)) });
        }),
    },
    systemClock,
  );
  let made = 0n;
  const settle = (count: number): readonly Promise<SettledAttempt>[] =>
    Array.from({ length: count }, () => queue.settle(attemptOf((made += 1n))));
  return { writes, settle, sizes: () => writes.map(({ ids }) => ids.length) };
}

function attemptOf(id: bigint): Attempt {
  const order: Attempt['order'] = {
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
    inDoubt: false,
    was: { status: 'queued', firstSentAt: null },
  };
  const answer = { status: 200, digest: 'sha256:0', outsideId: null };
  return { order, settlement: { to: 'sent', answer, isConflict: false } };
}

test('what ends in one moment is written together, and what ends meanwhile gathers', async () => {
  const { writes, settle, sizes } = createScene();
  const first = settle(10);
  await nextTick();
  void settle(20);
  void settle(30);
  await nextTick();
  assert.deepEqual(sizes(), [10]);
  writes[0]?.end();
  assert.deepEqual(
    (await Promise.all(first)).map(({ id }) => id),
    writes[0]?.ids,
  );
  await nextTick();
  assert.deepEqual(sizes(), [10, 50]);
});

test('a second writer helps where many wait, and there is never a third', async () => {
  const { writes, settle, sizes } = createScene();
  void settle(1);
  await nextTick();
  void settle(63);
  await nextTick();
  assert.deepEqual(sizes(), [1]);
  void settle(1);
  await nextTick();
  assert.deepEqual(sizes(), [1, 64]);
  void settle(1200);
  await nextTick();
  assert.deepEqual(sizes(), [1, 64]);
  writes[0]?.end();
  writes[1]?.end();
  await nextTick();
  assert.deepEqual(sizes(), [1, 64, 500, 500]);
  writes[2]?.end();
  await nextTick();
  assert.deepEqual(sizes(), [1, 64, 500, 500, 200]);
});

test('a batch that cannot be written is told to its own orders, and the next ones are written', async () => {
  const { writes, settle, sizes } = createScene();
  const [one] = settle(1);
  await nextTick();
  const [two] = settle(1);
  writes[0]?.end(new Error('no database'));
  await assert.rejects(one ?? Promise.resolve(), /no database/);
  await nextTick();
  writes[1]?.end();
  assert.deepEqual(await two, { id: 2n, status: 'sent' });
  const [three] = settle(1);
  await nextTick();
  writes[2]?.end();
  assert.deepEqual([(await three)?.id, sizes()], [3n, [1, 1, 1]]);
});
