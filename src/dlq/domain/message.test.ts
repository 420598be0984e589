import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import {
  endAttempt,
  isDeletable,
  markDead,
  reopen,
  startAttempt,
  type AttemptEnd,
} from '../../../tests/support/dlq-message-model.ts';
import { comeBack, isRetryable, releaseReasonOf, type MessageState, type PublishEnd } from './message.ts';

const fresh: MessageState = {
  status: 'PENDING',
  retryCount: 0,
  maxRetries: 3,
  attemptNo: 0,
  leaseIsLive: false,
};

type Step = AttemptEnd | 'start' | 'lose lease' | 'come back' | 'mark dead' | 'reopen';
const steps: readonly Step[] = [
  'start',
  'acked',
  'failed',
  'released',
  'lose lease',
  'lease_expired',
  'come back',
  'mark dead',
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
    case 'mark dead':
      return markDead(state) ?? state;
    case 'reopen':
      return reopen(state) ?? state;
    case 'acked':
    case 'failed':
    case 'released':
    case 'lease_expired':
      return endAttempt(state, step) ?? state;
  }
}

const walk = fc.record({
  maxRetries: fc.integer({ min: 0, max: 5 }),
  steps: fc.array(fc.constantFrom(...steps), { maxLength: 60 }),
});

test('retry counts stay within their limits, and only RETRYING messages have a lease', () => {
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

test('only reopening leaves DEAD and grants a new budget', () => {
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

test('a message whose attempts all fail, lose their lease or come back is DEAD after max_retries attempts', () => {
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
          else if (end === 'lost') state = apply(apply(state, 'lose lease'), 'lease_expired');
          else if (end === 'acked and back') state = apply(apply(state, 'acked'), 'come back');
          else state = apply(state, 'come back');
        }
        assert.equal(attempts, maxRetries);
        assert.equal(state.status, 'DEAD');
      },
    ),
  );
});

test('an attempt counts only if the record may have caused its failure', () => {
  const results: readonly (readonly [PublishEnd, string | null])[] = [
    [{ result: 'acked' }, null],
    [{ result: 'unknown' }, null],
    [{ result: 'failed', fault: 'record' }, null],
    [{ result: 'failed', fault: 'cluster' }, 'cluster'],
    [{ result: 'failed', fault: 'topic' }, 'target'],
    [{ result: 'skipped' }, 'blocked'],
  ];
  for (const [end, reason] of results) assert.equal(releaseReasonOf(end), reason);
});

test('outages, missing topics and missing rights never make a message DEAD', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom('cluster', 'topic'), { maxLength: 50 }), (faults) => {
      let state = fresh;
      for (const fault of faults) {
        const isReleased = releaseReasonOf({ result: 'failed', fault }) !== null;
        state = apply(apply(state, 'start'), isReleased ? 'released' : 'failed');
      }
      assert.deepEqual(state, { ...fresh, attemptNo: faults.length });
    }),
  );
});

test('a released attempt leaves the budget as it was', () => {
  const released = apply(apply(fresh, 'start'), 'released');
  assert.deepEqual(released, { ...fresh, attemptNo: 1 });
});

test('a message with a live lease cannot be retried, marked dead, reopened or deleted', () => {
  const retrying = apply(fresh, 'start');
  assert.equal(startAttempt(retrying), null);
  assert.equal(markDead(retrying), null);
  assert.equal(reopen(retrying), null);
  assert.equal(isDeletable(retrying), false);
  assert.equal(endAttempt(retrying, 'lease_expired'), null, 'nor reaped');
});

test('a message with an expired lease can be retried, marked dead and deleted', () => {
  const lost = apply(apply(fresh, 'start'), 'lose lease');
  assert.ok(isRetryable(lost));
  assert.equal(markDead(lost)?.status, 'DEAD');
  assert.ok(isDeletable(lost));
});

test('reopening requires a terminal status or a spent budget', () => {
  assert.equal(reopen(fresh), null);
  assert.equal(reopen({ ...fresh, retryCount: 3 })?.retryCount, 0);
  assert.equal(reopen({ ...fresh, status: 'DEAD', retryCount: 3 })?.status, 'PENDING');
  assert.equal(reopen({ ...fresh, status: 'RESOLVED', retryCount: 1 })?.status, 'PENDING');
});
