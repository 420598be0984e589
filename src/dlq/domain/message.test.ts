import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import {
  comeBack,
  endAttempt,
  giveUp,
  isDeletable,
  isRetryable,
  isStatus,
  reopen,
  startAttempt,
  statuses,
  type AttemptEnd,
  type MessageState,
} from './message.ts';

const fresh: MessageState = {
  status: 'PENDING',
  retryCount: 0,
  maxRetries: 3,
  attemptNo: 0,
  leaseIsLive: false,
};

type Step = AttemptEnd | 'start' | 'lose lease' | 'come back' | 'give up' | 'reopen';
const steps: readonly Step[] = [
  'start',
  'acked',
  'failed',
  'released',
  'lose lease',
  'lease_over',
  'come back',
  'give up',
  'reopen',
];

function apply(state: MessageState, step: Step): MessageState {
  switch (step) {
    case 'start':
      return startAttempt(state) ?? state;
    case 'lose lease':
      return { ...state, leaseIsLive: false };
    case 'come back':
      return comeBack(state);
    case 'give up':
      return giveUp(state) ?? state;
    case 'reopen':
      return reopen(state) ?? state;
    case 'acked':
    case 'failed':
    case 'released':
    case 'lease_over':
      return endAttempt(state, step) ?? state;
  }
}

const walk = fc.record({
  maxRetries: fc.integer({ min: 0, max: 5 }),
  steps: fc.array(fc.constantFrom(...steps), { maxLength: 60 }),
});

test('whatever happens, the counts stay within their bounds and only RETRYING holds a lease', () => {
  fc.assert(
    fc.property(walk, ({ maxRetries, steps }) => {
      let state: MessageState = { ...fresh, maxRetries };
      for (const step of steps) {
        const before = state;
        state = apply(state, step);
        assert.ok(state.retryCount >= 0 && state.retryCount <= maxRetries);
        assert.ok(state.attemptNo >= before.attemptNo, 'the attempt number never goes back');
        assert.ok(!state.leaseIsLive || state.status === 'RETRYING');
        assert.ok(!(state.status === 'RETRYING' && state.retryCount === 0));
      }
    }),
  );
});

test('a person is the only way out of DEAD, and only a person grants a new budget', () => {
  fc.assert(
    fc.property(walk, ({ maxRetries, steps }) => {
      let state: MessageState = { ...fresh, maxRetries };
      let sinceReopen = 0;
      for (const step of steps) {
        const before = state;
        state = apply(state, step);
        if (step === 'start' && state !== before) sinceReopen += 1;
        if (step === 'released' && state !== before) sinceReopen -= 1;
        if (step === 'reopen' && state !== before) sinceReopen = 0;
        assert.ok(sinceReopen <= maxRetries, 'no more attempts than the budget');
        if (before.status === 'DEAD' && state.status !== 'DEAD') assert.equal(step, 'reopen');
      }
    }),
  );
});

test('a message whose every attempt fails, is lost or comes back reaches DEAD after max_retries attempts', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 6 }),
      fc.infiniteStream(fc.constantFrom('failed', 'lost', 'acked and back', 'back while retrying')),
      (maxRetries, ends) => {
        let state: MessageState = { ...fresh, maxRetries };
        let attempts = 0;
        while (isRetryable(state)) {
          attempts += 1;
          state = apply(state, 'start');
          const end = ends.next().value;
          if (end === 'failed') state = apply(state, 'failed');
          else if (end === 'lost') state = apply(apply(state, 'lose lease'), 'lease_over');
          else if (end === 'acked and back') state = apply(apply(state, 'acked'), 'come back');
          else state = apply(state, 'come back');
        }
        assert.equal(attempts, maxRetries);
        assert.equal(state.status, 'DEAD');
      },
    ),
  );
});

test('a released attempt leaves the budget as it was', () => {
  const released = apply(apply(fresh, 'start'), 'released');
  assert.deepEqual(released, { ...fresh, attemptNo: 1 });
});

test('a live attempt cannot be started again, given up, reopened or deleted', () => {
  const retrying = apply(fresh, 'start');
  assert.equal(startAttempt(retrying), null);
  assert.equal(giveUp(retrying), null);
  assert.equal(reopen(retrying), null);
  assert.equal(isDeletable(retrying), false);
  assert.equal(endAttempt(retrying, 'lease_over'), null, 'nor reaped');
});

test('a lost attempt may be started again, given up and deleted', () => {
  const lost = apply(apply(fresh, 'start'), 'lose lease');
  assert.ok(isRetryable(lost));
  assert.equal(giveUp(lost)?.status, 'DEAD');
  assert.ok(isDeletable(lost));
});

test('reopening needs a terminal status or a spent budget', () => {
  assert.equal(reopen(fresh), null);
  assert.equal(reopen({ ...fresh, retryCount: 3 })?.retryCount, 0);
  assert.equal(reopen({ ...fresh, status: 'DEAD', retryCount: 3 })?.status, 'PENDING');
  assert.equal(reopen({ ...fresh, status: 'RESOLVED', retryCount: 1 })?.status, 'PENDING');
});

test('the four statuses are known by name, in capitals only', () => {
  assert.ok(statuses.every(isStatus));
  assert.ok(!isStatus('pending') && !isStatus('') && !isStatus('toString'));
});
