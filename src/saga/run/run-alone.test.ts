import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { eventually } from '../../../tests/support/eventually.ts';
import { leasedSagaOf } from '../../../tests/support/leased-saga.ts';
import { sleep, systemClock } from '../../kernel/clock.ts';
import type { Answer } from '../domain/judge-answer.ts';
import { createCallSemaphore } from './call-semaphore.ts';
import type { LeasedSaga } from './leased-sagas.ts';
import { createSagaEngine, type EngineDeps } from './run-sagas.ts';

const aloneOf = (id: string): LeasedSaga => leasedSagaOf(id, { failedRounds: 2, runsAlone: true });

/** An engine over two lists of sagas, with a manual clock and a record of what it did; `hangs` is answered at the end of the test. */
function openEngine(
  t: TestContext,
  { answer, ...more }: Partial<EngineDeps> & Readonly<{ answer?: (id: string) => Promise<void> | void }> = {},
) {
  const ends = Promise.withResolvers<void>();
  const due = { together: [] as LeasedSaga[], alone: [] as LeasedSaga[] };
  const seen: string[] = [];
  let nowMs = 0;
  const engine = createSagaEngine(
    {
      async claim({ alone, limit }) {
        if (!alone) seen.push('claim');
        return due[alone ? 'alone' : 'together'].splice(0, limit);
      },
      failRound: async () => {},
      renew: async (renewed) => ({ renewed, locked: [], lost: [], endsAtMs: Infinity }),
      hasDueAlone: async () => due.alone.length > 0,
      nextDueInMs: async () => 1,
      settle: async () => ({ outcome: 'settled' }),
      calls: createCallSemaphore({ maxInFlight: 100, maxInFlightTo: () => 100, maxWaiting: 10 }),
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
      ...more,
    },
    { maxLeased: 100, leaseMs: 30, pollMs: 1 },
  );
  t.after(async () => {
    ends.resolve();
    await engine.stop(AbortSignal.timeout(1000));
  });
  return { engine, due, seen, passTime: (ms: number) => void (nowMs += ms) };
}

const isCalled = (seen: readonly string[], id: string): Promise<void> =>
  eventually(() => assert.ok(seen.includes(id), `${id} is called`));

test('a saga that runs alone waits half a minute for calls that hang, and then runs beside them', async (t) => {
  const { engine, due, seen, passTime } = openEngine(t);
  due.together.push(leasedSagaOf('hangs'));
  await engine.start();
  await isCalled(seen, 'hangs');
  due.alone.push(aloneOf('alone'));
  passTime(1000);
  await eventually(() => assert.equal(engine.leasedCount(), 2, 'it is claimed first'));
  passTime(29_000);
  await sleep(20);
  assert.ok(!seen.includes('alone'));
  passTime(1000);
  await isCalled(seen, 'alone');
  due.together.push(leasedSagaOf('next'));
  await isCalled(seen, 'next');
});

test('sagas run alone one after the other for half a minute, and then the others continue', async (t) => {
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

test('other sagas continue while the call of a saga that runs alone takes very long', async (t) => {
  const { engine, due, seen, passTime } = openEngine(t);
  due.alone.push(aloneOf('hangs'));
  await engine.start();
  await isCalled(seen, 'hangs');
  due.together.push(leasedSagaOf('other'));
  passTime(29_000);
  await sleep(20);
  assert.ok(!seen.includes('other'));
  passTime(1000);
  await isCalled(seen, 'other');
});

test('if the saga that runs alone cannot be claimed, no room is made for it', async (t) => {
  const { engine, due, seen, passTime } = openEngine(t, {
    hasDueAlone: async () => true,
    async claim({ alone }) {
      if (alone) throw new Error('not to be had');
      return due.together.splice(0);
    },
  });
  due.together.push(leasedSagaOf('hangs'));
  await engine.start();
  await isCalled(seen, 'hangs');
  passTime(1000);
  due.together.push(leasedSagaOf('other'));
  await isCalled(seen, 'other');
});

test('a saga whose lease was lost counts until its call has ended', async (t) => {
  const answered = Promise.withResolvers<void>();
  let renewals = 0;
  const { engine, due, seen, passTime } = openEngine(t, {
    answer: (id) => (id === 'lost' ? answered.promise : undefined),
    async renew(lost) {
      renewals += 1;
      return { renewed: [], locked: [], lost, endsAtMs: Infinity };
    },
  });
  due.together.push(leasedSagaOf('lost', { bytes: 1000, lease: { owner: 'me', epoch: 1n, endsAtMs: 119 } }));
  await engine.start();
  await isCalled(seen, 'lost');
  passTime(100);
  await eventually(() => assert.ok(renewals > 0));
  assert.deepEqual([engine.leasedCount(), engine.leasedBytes()], [1, 1000]);
  due.alone.push(aloneOf('alone'));
  passTime(1000);
  await eventually(() => assert.equal(engine.leasedCount(), 2));
  await sleep(20);
  assert.ok(!seen.includes('alone'));
  answered.resolve();
  await isCalled(seen, 'alone');
  await eventually(() => assert.deepEqual([engine.leasedCount(), engine.leasedBytes()], [0, 0]));
});
