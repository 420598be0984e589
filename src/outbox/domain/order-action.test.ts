import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { resolutions, statuses } from './order.ts';
import { refusalOf, type Action, type ActionState } from './order-action.ts';

const actions = fc.constantFrom<Action>('cancel', 'skip', 'supersede');
const states: fc.Arbitrary<ActionState> = fc
  .record({
    status: fc.constantFrom(...statuses),
    resolution: fc.option(fc.constantFrom(...resolutions)),
    inDoubt: fc.boolean(),
    hasSucceeded: fc.boolean(),
  })
  .filter(({ status, resolution }) => resolution === null || status === 'dead');

test('sent, sending and resolved orders allow no action', () => {
  fc.assert(
    fc.property(actions, states, fc.boolean(), (action, state, effectChecked) => {
      if (refusalOf(action, state, effectChecked) !== null) return;
      assert.ok(!state.hasSucceeded && state.resolution === null);
      assert.ok(state.status !== 'sent' && state.status !== 'sending');
    }),
  );
});

test('an order in doubt requires effect_checked', () => {
  fc.assert(
    fc.property(actions, states, (action, state) => {
      const unlooked = refusalOf(action, state, false);
      if (unlooked === null) assert.equal(state.inDoubt, false);
      if (unlooked === 'effect_unchecked') assert.equal(refusalOf(action, state, true), null);
    }),
  );
});

test('waiting orders can be cancelled, dead ones skipped or superseded', () => {
  const state = { resolution: null, inDoubt: false, hasSucceeded: false };
  for (const status of ['queued', 'failed'] as const) {
    assert.equal(refusalOf('cancel', { ...state, status }, false), null);
    assert.equal(refusalOf('skip', { ...state, status }, false), 'wrong_status');
  }
  assert.equal(refusalOf('cancel', { ...state, status: 'dead' }, false), 'wrong_status');
  assert.equal(refusalOf('skip', { ...state, status: 'dead' }, false), null);
  assert.equal(refusalOf('supersede', { ...state, status: 'dead' }, false), null);
});
