import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createReaper } from './reap-lost.ts';

/** A database that is there or away, and a clock that is set by hand. */
function scene() {
  const state = { nowMs: 0, isAway: false, looks: 0 };
  const ask = async (): Promise<void> => {
    if (state.isAway) throw new Error('the database is away');
  };
  const reap = createReaper({
    store: {
      async reap() {
        await ask();
        state.looks += 1;
        return 1;
      },
    },
    clock: { now: () => new Date(state.nowMs), monotonicMs: () => state.nowMs },
    ask,
  });
  state.nowMs = 3000;
  return { state, reap };
}

test('a process that has just begun waits a moment, for the database may have been away until then', async () => {
  const { state, reap } = scene();
  state.nowMs = 2900;
  assert.deepEqual([await reap(), state.looks], [0, 0]);
});

test('lost attempts are ended at every look', async () => {
  const { state, reap } = scene();
  assert.deepEqual([await reap(), await reap()], [1, 1]);
  assert.equal(state.looks, 2);
});

test('when the database comes back, those who held jobs meanwhile have a moment before any is taken', async () => {
  const { state, reap } = scene();
  state.isAway = true;
  await assert.rejects(reap());
  state.nowMs = 60_000;
  await assert.rejects(reap());
  state.isAway = false;
  assert.equal(await reap(), 0);
  state.nowMs += 2900;
  assert.equal(await reap(), 0);
  assert.equal(state.looks, 0);
  state.nowMs += 100;
  assert.equal(await reap(), 1);
});

test('a database that goes away again begins the moment anew', async () => {
  const { state, reap } = scene();
  state.isAway = true;
  await assert.rejects(reap());
  state.isAway = false;
  assert.equal(await reap(), 0);
  state.isAway = true;
  state.nowMs += 3000;
  await assert.rejects(reap());
  state.isAway = false;
  assert.deepEqual([await reap(), await reap(), state.looks], [0, 0, 0]);
});
