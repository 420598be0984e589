import assert from 'node:assert/strict';
import { test } from 'node:test';
import { leasedSagaOf } from '../../../tests/support/leased-saga.ts';
import { sleep, systemClock } from '../../kernel/clock.ts';
import type { Step, Workflow } from '../domain/workflow/workflow.ts';
import { createCallSemaphore } from './call-semaphore.ts';
import type { LeasedSaga } from './leased-sagas.ts';
import { createSagaEngine } from './run-sagas.ts';
import { noCircuits } from './service-circuits.ts';

/** The same saga under different claims. */
function claimedAs(epoch: bigint, endsAtMs = Number.POSITIVE_INFINITY): LeasedSaga {
  return leasedSagaOf('one', { lease: { owner: 'me', epoch, endsAtMs } });
}

/** An engine whose leases never expire and whose settles succeed at once. */
const quiet = {
  settle: async () => ({ outcome: 'settled' }) as const,
  failRound: async () => {},
  renew: async (renewed: readonly LeasedSaga[]) => ({
    renewed,
    locked: [],
    lost: [],
    endsAtMs: Number.POSITIVE_INFINITY,
  }),
  hasDueAlone: async () => false,
  nextDueInMs: async () => 1,
  clock: systemClock,
  serviceOf: () => ({ isIdempotent: true }),
  now: () => 0,
  random: () => 0.5,
  waitForWork: (ms: number, signal: AbortSignal) => sleep(ms, signal),
};

test('a saga that was released and claimed again is not lost when its former lease fails to renew', async (t) => {
  // The first lease is due for renewal at once.
  const due = [claimedAs(1n, systemClock.monotonicMs() + 1900), claimedAs(2n)];
  const firstAnswer = Promise.withResolvers<void>();
  const renewing = Promise.withResolvers<void>();
  const renewed = Promise.withResolvers<void>();
  const settling = Promise.withResolvers<void>();
  const settled = Promise.withResolvers<void>();
  const calledAgain = Promise.withResolvers<bigint>();

  const engine = createSagaEngine(
    {
      ...quiet,
      claim: async () => due.splice(0, 1),
      async renew(lost) {
        renewing.resolve();
        await renewed.promise;
        return { renewed: [], locked: [], lost, endsAtMs: 0 };
      },
      async settle({ saga }) {
        if (saga.lease.epoch === 2n) {
          settling.resolve();
          await settled.promise;
        }
        return { outcome: 'settled' };
      },
      calls: createCallSemaphore({ maxInFlight: 10, maxInFlightTo: () => 10, maxWaiting: 10 }),
      async send({ epoch }) {
        if (epoch === 2n) calledAgain.resolve(epoch);
        else await firstAnswer.promise;
        return { class: 'refused', detail: 'no', isTimeout: false, isUnsent: false };
      },
      onSettled: () => {},
      onError: (_what, error) => calledAgain.reject(error),
    },
    { maxLeased: 1, leaseMs: 3000, pollMs: 1 },
  );
  await engine.start();
  t.after(() => engine.stop(AbortSignal.timeout(1000)));
  await renewing.promise;
  firstAnswer.resolve();
  await settling.promise;
  renewed.resolve();
  await sleep(0);
  settled.resolve();
  assert.equal(await Promise.race([calledAgain.promise, sleep(5000)]), 2n);
});

test('a saga that is claimed after another process closed the circuit of its service is called', async (t) => {
  const due = [claimedAs(1n)];
  let isOpen = true;
  const called = Promise.withResolvers<string>();
  const engine = createSagaEngine(
    {
      ...quiet,
      claim: async () => due.splice(0),
      calls: createCallSemaphore({ maxInFlight: 10, maxInFlightTo: () => 10, maxWaiting: 10 }),
      circuits: {
        ...noCircuits,
        isOpen: () => isOpen,
        hasOpen: () => isOpen,
        refresh: async () => void (isOpen = false),
      },
      async send() {
        called.resolve('called');
        return { class: 'done', output: null };
      },
      onSettled: (_saga, { state }) => state.waiting !== null && called.resolve('waits'),
      onError: (_what, error) => called.reject(error),
    },
    { maxLeased: 1, leaseMs: 3000, pollMs: 1 },
  );
  await engine.start();
  t.after(() => engine.stop(AbortSignal.timeout(1000)));
  assert.equal(await called.promise, 'called');
});

test('sagas that grow beyond the size limit run one after the other, and all end', async (t) => {
  const { workflow } = claimedAs(1n);
  const steps = ['a', 'b', 'c', 'd'].map((name) => ({ ...(workflow.steps[0] as Step), name }));
  const large: Workflow = { ...workflow, steps };
  const due: LeasedSaga[] = Array.from({ length: 100 }, (_, i) => ({
    ...claimedAs(1n),
    id: `saga ${i}`,
    workflow: large,
  }));
  const allEnded = Promise.withResolvers<void>();
  let [ended, mostBytes, epoch] = [0, 0, 1n];
  const engine = createSagaEngine(
    {
      async claim({ limit, bytes }) {
        epoch += 1n;
        let [count, sum] = [0, 0];
        while (count < Math.min(limit, due.length) && (sum += due[count]?.bytes ?? 0) <= bytes) count += 1;
        return due
          .splice(0, Math.max(1, count))
          .map((saga) => ({ ...saga, lease: { ...saga.lease, epoch } }));
      },
      ...quiet,
      calls: createCallSemaphore({ maxInFlight: 20, maxInFlightTo: () => 20, maxWaiting: 200 }),
      async send() {
        mostBytes = Math.max(mostBytes, engine.leasedBytes());
        return { class: 'done', output: 'x'.repeat(250_000) };
      },
      onSettled(saga, { state, keepsLease }) {
        if (state.status === 'COMPLETED') ended += 1;
        else if (!keepsLease) due.push({ ...saga, state });
        if (ended === 100) allEnded.resolve();
      },
      onError: (_what, error) => allEnded.reject(error),
    },
    { maxLeased: 200, leaseMs: 15_000, pollMs: 1 },
  );
  await engine.start();
  t.after(() => engine.stop(AbortSignal.timeout(1000)));
  await allEnded.promise;
  assert.ok(mostBytes > 10_000_000 && mostBytes < 25_000_000, `${mostBytes} bytes at most`);
});

test('a saga is written once per call and once at its end, also while others wait for its permit', async (t) => {
  const { workflow } = claimedAs(1n);
  const steps = ['a', 'b', 'c'].map((name) => ({ ...(workflow.steps[0] as Step), name }));
  const due = Array.from({ length: 60 }, (_, i) =>
    leasedSagaOf(`saga ${i}`, { workflow: { ...workflow, steps } }),
  );
  const allEnded = Promise.withResolvers<void>();
  const settles = new Map<string, number>();
  let ended = 0;
  const engine = createSagaEngine(
    {
      claim: async ({ limit }) => due.splice(0, limit),
      ...quiet,
      calls: createCallSemaphore({ maxInFlight: 10, maxInFlightTo: () => 10, maxWaiting: 100 }),
      async send() {
        await sleep(1);
        return { class: 'done', output: null };
      },
      onSettled({ id }, { state }) {
        settles.set(id, (settles.get(id) ?? 0) + 1);
        if (state.status === 'COMPLETED') ended += 1;
        if (ended === 60) allEnded.resolve();
      },
      onError: (_what, error) => allEnded.reject(error),
    },
    { maxLeased: 100, leaseMs: 15_000, pollMs: 1 },
  );
  await engine.start();
  t.after(() => engine.stop(AbortSignal.timeout(1000)));
  await allEnded.promise;
  assert.deepEqual(new Set(settles.values()), new Set([4]));
});

test('nothing is claimed after a stop, also if a claim waits for more room', async () => {
  const answer = Promise.withResolvers<void>();
  const called = Promise.withResolvers<void>();
  let [claims, claimsAfterStop, calls] = [0, 0, 0];
  let isStopping = false;
  const engine = createSagaEngine(
    {
      async claim() {
        claims += 1;
        if (isStopping) claimsAfterStop += 1;
        return claims > 1 ? [] : Array.from({ length: 7 }, (_, i) => leasedSagaOf(`saga ${i}`));
      },
      ...quiet,
      calls: createCallSemaphore({ maxInFlight: 10, maxInFlightTo: () => 10, maxWaiting: 100 }),
      async send() {
        calls += 1;
        if (calls === 7) called.resolve();
        await answer.promise;
        return { class: 'done', output: null };
      },
      onSettled: () => {},
      onError: () => {},
    },
    // There is room for one saga, and a claim waits for room for two.
    { maxLeased: 8, leaseMs: 15_000, pollMs: 1000 },
  );
  await engine.start();
  await called.promise;
  isStopping = true;
  const stopped = engine.stop(AbortSignal.timeout(5000));
  answer.resolve();
  await stopped;
  assert.equal(claimsAfterStop, 0);
});
