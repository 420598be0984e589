import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep, systemClock } from '../../kernel/clock.ts';
import { newSaga } from '../domain/saga-state.ts';
import type { Workflow } from '../domain/workflow.ts';
import { createCallSlots } from './call-slots.ts';
import type { HeldSaga, SettleResult } from './ports.ts';
import { createSagaEngine } from './run-sagas.ts';
import { createSettleQueue } from './settle-queue.ts';

const workflow: Workflow = {
  name: 'order',
  deadlineMs: null,
  steps: [
    {
      name: 'reserve',
      service: 'shop',
      method: 'POST /reserve',
      undo: { kind: 'none' },
      isPivot: false,
      timeoutMs: 1000,
      retry: { maxAttempts: 3, backoff: 'fixed', initialIntervalMs: 1 },
      input: null,
      undoInput: null,
    },
  ],
};

/** The same saga, as each claim finds it. */
function claimedAs(epoch: bigint): HeldSaga {
  return {
    id: 'one',
    workflow,
    payload: null,
    startedAt: 0,
    trace: null,
    state: newSaga(0, null),
    wasLost: false,
    lease: { owner: 'me', epoch, endsAtMs: Number.POSITIVE_INFINITY },
  };
}

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
          if (hasRenewed) return { ids: held.map(({ id }) => id), endsAtMs: Number.POSITIVE_INFINITY };
          hasRenewed = true;
          renewing.resolve();
          await renewed.promise;
          return { ids: [], endsAtMs: Number.POSITIVE_INFINITY };
        },
        reap: async () => 0,
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
