import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { test } from 'node:test';
import { systemClock } from '../../kernel/clock.ts';
import { createSoloGate } from '../../kernel/solo-gate.ts';
import { createTurns } from '../../kernel/turns.ts';
import { createDispatcher, type DispatchDeps } from './dispatch-orders.ts';
import type { ClaimedOrder, ClaimOptions, ClaimResult, DeliveryStore, Destination } from './ports.ts';
import { createSettleQueue } from './settle-queue.ts';
import { createScene, sent } from './test-gates.ts';

const nothing: ClaimResult = { orders: [], last: null, isFull: false, crowded: [] };

function order(id: bigint, destination: string): ClaimedOrder {
  return {
    id,
    idempotencyKey: `k-${id}`,
    request: '{}',
    orderingKey: null,
    traceId: null,
    traceparent: null,
    destination,
    lease: { owner: 'w', epoch: 1n, endsAtMs: systemClock.monotonicMs() + 60_000 },
    retryCount: 0,
    ageMs: 0,
    claimedAtMs: systemClock.monotonicMs(),
    inDoubt: false,
    was: { status: 'queued', firstSentAt: null },
  };
}

function destination(name: string, send: () => Promise<void>): Destination {
  return {
    name,
    type: 'http',
    isInternal: false,
    policy: {
      idempotency: 'enforced',
      dedupWindowMs: 0,
      maxAgeMs: 60_000,
      retryMax: 5,
      backoff: { initialMs: 1, maxMs: 1, jitter: 0 },
    },
    maxInFlight: 8,
    timeoutMs: 1000,
    send: (orders) => orders.map(() => send().then(() => sent)),
    askStatus: null,
    isDisabled: false,
    hasSchema: false,
    flawsOf: () => [],
    close: async () => {},
  };
}

test('while an order runs alone nobody in the process holds another one, not even unstarted', async () => {
  let nextId = 1n;
  const claimedAfter = Promise.withResolvers<void>();
  let held = 0;
  let lonely = 0;
  let heldBesideLonely = 0;
  const aloneRuns = Promise.withResolvers<void>();
  const claim = async ({ destination: name, lane }: ClaimOptions): Promise<ClaimResult> => {
    if (name === 'killer') return lane === 'alone' && lonely === 0 ? one('killer') : nothing;
    return lane === 'free' ? one('other') : nothing;
  };
  const one = (name: string): ClaimResult => {
    nextId += 1n;
    if (lonely > 0 && nextId > 9n) claimedAfter.resolve();
    held += name === 'other' ? 1 : 0;
    return { ...nothing, orders: [order(nextId, name)], isFull: true, last: null };
  };
  const store: DeliveryStore = {
    claim,
    holdBack: async () => {},
    claimProbe: async () => null,
    succeeded: async () => new Set(),
    settle: async (attempts) => {
      for (const attempt of attempts) held -= attempt.order.destination === 'other' ? 1 : 0;
      return attempts.map((attempt) => ({ id: attempt.order.id, status: 'sent' }));
    },
    reap: async () => 0,
    waitingDestinations: async () => [],
  };
  const { newGate } = createScene();
  const shared = {
    store,
    clock: systemClock,
    queue: createSettleQueue(store, systemClock),
    turns: createTurns(2),
    solo: createSoloGate(),
    waitForWork: (ms: number) => delay(Math.min(ms, 5)),
    batchSize: 4,
    parallelism: 2,
    idleSleepMs: 5,
    onClaim: () => {},
    onSettled: () => {},
    onError: (error: unknown) => assert.fail(String(error)),
    onLost: (_: unknown, error: unknown) => assert.fail(String(error)),
  } satisfies Omit<DispatchDeps, 'gate'>;
  const killer = destination('killer', async () => {
    lonely += 1;
    for (let look = 0; look < 20; look += 1) {
      heldBesideLonely += held;
      await delay(2);
    }
    aloneRuns.resolve();
  });
  const other = destination('other', () => delay(1));
  const dispatchers = [
    createDispatcher({ ...shared, gate: await newGate() }, other),
    createDispatcher({ ...shared, gate: await newGate() }, killer),
  ];
  for (const dispatcher of dispatchers) await dispatcher.start();
  await aloneRuns.promise;
  await claimedAfter.promise;
  await Promise.all(dispatchers.map((dispatcher) => dispatcher.stop(AbortSignal.timeout(2000))));
  assert.equal(heldBesideLonely, 0);
  assert.equal(held, 0);
});
