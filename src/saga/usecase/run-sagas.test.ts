import assert from 'node:assert/strict';
import { test } from 'node:test';
import { heldSagaOf } from '../../../tests/support/held-saga.ts';
import { sleep, systemClock } from '../../kernel/clock.ts';
import type { Step, Workflow } from '../domain/workflow.ts';
import { createCallSlots } from './call-slots.ts';
import type { HeldSaga, SagaStore, SettleResult } from './ports.ts';
import { createSagaEngine } from './run-sagas.ts';
import { createSettleQueue } from './settle-queue.ts';

/** The same saga, as each claim finds it. */
function claimedAs(epoch: bigint): HeldSaga {
  return heldSagaOf('one', { lease: { owner: 'me', epoch, endsAtMs: Number.POSITIVE_INFINITY } });
}

/** A store in which every lease lives on. */
const quietStore: Omit<SagaStore, 'claim'> = {
  settle: async () => [],
  setBack: async () => {},
  renew: async (held) => ({
    ids: held.map(({ id }) => id),
    locked: [],
    endsAtMs: Number.POSITIVE_INFINITY,
  }),
  reap: async () => 0,
  hasAlone: async () => false,
  nextDueInMs: async () => 1,
};

/** What an engine has around it where everything is written at once. */
const around = {
  queue: createSettleQueue({
    settle: async (all) => all.map((): SettleResult => ({ outcome: 'settled' })),
  }),
  clock: systemClock,
  serviceOf: () => ({ isIdempotent: true }),
  now: () => 0,
  random: () => 0.5,
  waitForWork: (ms: number, signal: AbortSignal) => sleep(ms, signal),
};

test('a saga that was let go and claimed anew is not lost with the renewal of its former lease', async (t) => {
  const due = [claimedAs(1n), claimedAs(2n)];
  const firstAnswer = Promise.withResolvers<void>();
  const renewing = Promise.withResolvers<void>();
  const renewed = Promise.withResolvers<void>();
  const settling = Promise.withResolvers<void>();
  const settled = Promise.withResolvers<void>();
  const calledAgain = Promise.withResolvers<bigint>();
  let hasRenewed = false;

  const engine = createSagaEngine(
    {
      store: {
        claim: async () => due.splice(0, 1),
        settle: async () => [],
        async renew(held) {
          const endsAtMs = Number.POSITIVE_INFINITY;
          if (hasRenewed) return { ids: held.map(({ id }) => id), locked: [], endsAtMs };
          hasRenewed = true;
          renewing.resolve();
          await renewed.promise;
          return { ids: [], locked: [], endsAtMs };
        },
        setBack: async () => {},
        reap: async () => 0,
        hasAlone: async () => false,
        nextDueInMs: async () => 1,
      },
      queue: createSettleQueue({
        async settle(settles) {
          if (settles.some(({ saga }) => saga.lease.epoch === 2n)) {
            settling.resolve();
            await settled.promise;
          }
          return settles.map((): SettleResult => ({ outcome: 'settled' }));
        },
      }),
      slots: createCallSlots({ most: 10, mostTo: () => 10, mostWaiting: 10 }),
      async send({ epoch }) {
        if (epoch === 2n) calledAgain.resolve(epoch);
        else await firstAnswer.promise;
        return { class: 'refused', detail: 'no', isTimeout: false, isUnsent: false };
      },
      clock: systemClock,
      serviceOf: () => ({ isIdempotent: true }),
      now: () => 0,
      random: () => 0.5,
      onSettled: () => {},
      waitForWork: (ms, signal) => sleep(ms, signal),
      onError: (_what, error) => calledAgain.reject(error),
    },
    { mostHeld: 1, leaseMs: 30, pollMs: 1 },
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

test('sagas that grow beyond the room that there is go on one after the other, and all to their ends', async (t) => {
  const { workflow } = claimedAs(1n);
  const steps = ['a', 'b', 'c', 'd'].map((name) => ({ ...(workflow.steps[0] as Step), name }));
  const large: Workflow = { ...workflow, steps };
  const due: HeldSaga[] = Array.from({ length: 100 }, (_, i) => ({
    ...claimedAs(1n),
    id: `saga ${i}`,
    workflow: large,
  }));
  const allEnded = Promise.withResolvers<void>();
  let [ended, mostBytes, epoch] = [0, 0, 1n];
  const engine = createSagaEngine(
    {
      store: {
        async claim({ limit, bytes }) {
          epoch += 1n;
          let [count, sum] = [0, 0];
          while (count < Math.min(limit, due.length) && (sum += due[count]?.bytes ?? 0) <= bytes) count += 1;
          return due
            .splice(0, Math.max(1, count))
            .map((saga) => ({ ...saga, lease: { ...saga.lease, epoch } }));
        },
        ...quietStore,
      },
      queue: createSettleQueue({
        settle: async (settles) => settles.map((): SettleResult => ({ outcome: 'settled' })),
      }),
      slots: createCallSlots({ most: 20, mostTo: () => 20, mostWaiting: 200 }),
      async send() {
        mostBytes = Math.max(mostBytes, engine.heldBytes());
        return { class: 'done', output: 'x'.repeat(250_000) };
      },
      clock: systemClock,
      serviceOf: () => ({ isIdempotent: true }),
      now: () => 0,
      random: () => 0.5,
      onSettled(saga, { state, keepsLease }) {
        if (state.status === 'COMPLETED') ended += 1;
        else if (!keepsLease) due.push({ ...saga, state });
        if (ended === 100) allEnded.resolve();
      },
      waitForWork: (ms, signal) => sleep(ms, signal),
      onError: (_what, error) => allEnded.reject(error),
    },
    { mostHeld: 200, leaseMs: 15_000, pollMs: 1 },
  );
  await engine.start();
  t.after(() => engine.stop(AbortSignal.timeout(1000)));
  await allEnded.promise;
  assert.ok(mostBytes > 10_000_000 && mostBytes < 25_000_000, `${mostBytes} bytes at most`);
});

test('a saga is written down once for every call and once at its end, also while others wait for its slot', async (t) => {
  const { workflow } = claimedAs(1n);
  const steps = ['a', 'b', 'c'].map((name) => ({ ...(workflow.steps[0] as Step), name }));
  const due = Array.from({ length: 60 }, (_, i) =>
    heldSagaOf(`saga ${i}`, { workflow: { ...workflow, steps } }),
  );
  const allEnded = Promise.withResolvers<void>();
  const settles = new Map<string, number>();
  let ended = 0;
  const engine = createSagaEngine(
    {
      store: {
        claim: async ({ limit }) => due.splice(0, limit),
        ...quietStore,
      },
      slots: createCallSlots({ most: 10, mostTo: () => 10, mostWaiting: 100 }),
      async send() {
        await sleep(1);
        return { class: 'done', output: null };
      },
      ...around,
      onSettled({ id }, { state }) {
        settles.set(id, (settles.get(id) ?? 0) + 1);
        if (state.status === 'COMPLETED') ended += 1;
        if (ended === 60) allEnded.resolve();
      },
      onError: (_what, error) => allEnded.reject(error),
    },
    { mostHeld: 100, leaseMs: 15_000, pollMs: 1 },
  );
  await engine.start();
  t.after(() => engine.stop(AbortSignal.timeout(1000)));
  await allEnded.promise;
  assert.deepEqual(new Set(settles.values()), new Set([4]));
});

test('nothing is claimed after a stop, also where a claim waits for more room', async () => {
  const answer = Promise.withResolvers<void>();
  const called = Promise.withResolvers<void>();
  let [claims, claimsAfterStop, calls] = [0, 0, 0];
  let isStopping = false;
  const engine = createSagaEngine(
    {
      store: {
        async claim() {
          claims += 1;
          if (isStopping) claimsAfterStop += 1;
          return claims > 1 ? [] : Array.from({ length: 7 }, (_, i) => heldSagaOf(`saga ${i}`));
        },
        ...quietStore,
      },
      slots: createCallSlots({ most: 10, mostTo: () => 10, mostWaiting: 100 }),
      async send() {
        calls += 1;
        if (calls === 7) called.resolve();
        await answer.promise;
        return { class: 'done', output: null };
      },
      ...around,
      onSettled: () => {},
      onError: () => {},
    },
    // There is room for one, and a claim waits for room for two.
    { mostHeld: 8, leaseMs: 15_000, pollMs: 1000 },
  );
  await engine.start();
  await called.promise;
  isStopping = true;
  const stopped = engine.stop(AbortSignal.timeout(5000));
  answer.resolve();
  await stopped;
  assert.equal(claimsAfterStop, 0);
});
