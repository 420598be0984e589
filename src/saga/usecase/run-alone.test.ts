import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { eventually } from '../../../tests/support/eventually.ts';
import { heldSagaOf } from '../../../tests/support/held-saga.ts';
import { sleep, systemClock } from '../../kernel/clock.ts';
import type { Answer } from '../domain/judge-answer.ts';
import { createCallSlots } from './call-slots.ts';
import type { HeldSaga, SagaStore, SettleResult } from './ports.ts';
import { createSagaEngine } from './run-sagas.ts';
import { createSettleQueue } from './settle-queue.ts';

const aloneOf = (id: string): HeldSaga => heldSagaOf(id, { setbacks: 2, runsAlone: true });

/** An engine over two lists of sagas, with a clock that goes forward as the test says, and with what it did, in order; `hangs` is answered at its end. */
function openEngine(
  t: TestContext,
  { answer, ...more }: Partial<SagaStore> & Readonly<{ answer?: (id: string) => Promise<void> | void }> = {},
) {
  const ends = Promise.withResolvers<void>();
  const due = { together: [] as HeldSaga[], alone: [] as HeldSaga[] };
  const seen: string[] = [];
  let nowMs = 0;
  const engine = createSagaEngine(
    {
      store: {
        async claim({ lane, limit }) {
          if (lane === 'together') seen.push('claim');
          return due[lane].splice(0, limit);
        },
        settle: async () => [],
        setBack: async () => {},
        renew: async (held) => ({ ids: held.map(({ id }) => id), locked: [], endsAtMs: Infinity }),
        reap: async () => 0,
        hasAlone: async () => due.alone.length > 0,
        nextDueInMs: async () => 1,
        ...more,
      },
      queue: createSettleQueue({
        settle: async (settles) => settles.map((): SettleResult => ({ outcome: 'settled' })),
      }),
      slots: createCallSlots({ most: 100, mostTo: () => 100, mostWaiting: 10 }),
      async send({ saga }): Promise<Answer> {
        seen.push(saga.id);
        await (saga.id === 'hangs' ? ends.promise : answer?.(saga.id));
        return { class: 'done', output: null };
      },
      clock: { ...systemClock, monotonicMs: () => nowMs },
      serviceOf: () => ({ isIdempotent: true }),
      now: () => 0,
      random: () => 0.5,
      onSettled: () => {},
      waitForWork: (ms, signal) => sleep(ms, signal),
      onError: () => {},
    },
    { mostHeld: 100, leaseMs: 30, pollMs: 1 },
  );
  t.after(async () => {
    ends.resolve();
    await engine.stop(AbortSignal.timeout(1000));
  });
  return { engine, due, seen, passTime: (ms: number) => void (nowMs += ms) };
}

const isCalled = (seen: readonly string[], id: string): Promise<void> =>
  eventually(() => assert.ok(seen.includes(id), `${id} is called`));

test('a saga that is to run alone waits half a minute for calls that hang, and then runs beside them', async (t) => {
  const { engine, due, seen, passTime } = openEngine(t);
  due.together.push(heldSagaOf('hangs'));
  await engine.start();
  await isCalled(seen, 'hangs');
  due.alone.push(aloneOf('alone'));
  passTime(1000);
  await eventually(() => assert.equal(engine.held(), 2, 'it is claimed first'));
  passTime(29_000);
  await sleep(20);
  assert.ok(!seen.includes('alone'));
  passTime(1000);
  await isCalled(seen, 'alone');
  due.together.push(heldSagaOf('next'));
  await isCalled(seen, 'next');
});

test('sagas that are to run alone run one after the other for half a minute, and then it is the turn of the others', async (t) => {
  const { engine, due, seen, passTime } = openEngine(t, { answer: () => passTime(1000) });
  due.alone.push(...Array.from({ length: 40 }, (_, i) => aloneOf(`alone ${i}`)));
  await engine.start();
  await eventually(() => assert.ok(seen.filter((what) => what === 'claim').length > 5));
  assert.equal(seen.indexOf('claim'), 30);
  passTime(29_000);
  const claims = seen.length;
  await eventually(() => assert.ok(seen.length > claims + 5));
  assert.equal(due.alone.length, 10, 'the others have as much time');
  passTime(1000);
  await eventually(() => assert.equal(due.alone.length, 0));
});

test('a process opens up again while the call of a saga that runs alone takes very long', async (t) => {
  const { engine, due, seen, passTime } = openEngine(t);
  due.alone.push(aloneOf('hangs'));
  await engine.start();
  await isCalled(seen, 'hangs');
  due.together.push(heldSagaOf('other'));
  passTime(29_000);
  await sleep(20);
  assert.ok(!seen.includes('other'));
  passTime(1000);
  await isCalled(seen, 'other');
});

test('where the saga that is to run alone cannot be claimed, nobody makes room for it', async (t) => {
  const { engine, due, seen, passTime } = openEngine(t, {
    hasAlone: async () => true,
    async claim({ lane }) {
      if (lane === 'alone') throw new Error('not to be had');
      return due.together.splice(0);
    },
  });
  due.together.push(heldSagaOf('hangs'));
  await engine.start();
  await isCalled(seen, 'hangs');
  passTime(1000);
  due.together.push(heldSagaOf('other'));
  await isCalled(seen, 'other');
});

test('a saga whose lease was lost takes its room until its call has ended', async (t) => {
  const answered = Promise.withResolvers<void>();
  let renewals = 0;
  const { engine, due, seen, passTime } = openEngine(t, {
    answer: (id) => (id === 'lost' ? answered.promise : undefined),
    async renew(held) {
      renewals += 1;
      const kept = held.map(({ id }) => id).filter((id) => id !== 'lost');
      return { ids: kept, locked: [], endsAtMs: Infinity };
    },
  });
  due.together.push(heldSagaOf('lost', { bytes: 1000 }));
  await engine.start();
  await isCalled(seen, 'lost');
  passTime(100);
  await eventually(() => assert.ok(renewals > 0));
  assert.deepEqual([engine.held(), engine.heldBytes()], [1, 1000]);
  due.alone.push(aloneOf('alone'));
  passTime(1000);
  await eventually(() => assert.equal(engine.held(), 2));
  await sleep(20);
  assert.ok(!seen.includes('alone'));
  answered.resolve();
  await isCalled(seen, 'alone');
  await eventually(() => assert.deepEqual([engine.held(), engine.heldBytes()], [0, 0]));
});
