import assert from 'node:assert/strict';
import { test } from 'node:test';
import { advanceByOperator } from './advance-by-operator.ts';
import { Driven, done, refused, silence, two } from '../../../tests/support/saga-model/driven-saga.ts';
import { hasOneAttemptLeft } from './failed-rounds.ts';

const givenUp = { kind: 'given_up', reason: 'too often' } as const;
const by = { actor: 'ann', reason: 'looked' };

test('a saga that is given up waits for a person at what would have been called next, and says why', () => {
  const saga = new Driven(two);
  assert.equal(saga.on(givenUp).next.do, 'needs_attention');
  assert.deepEqual(saga.state.stuck, { step: 0, op: 'EXECUTE', reason: 'too often' });
  assert.deepEqual(
    saga.state.log.map(({ status, answer, isUnsent }) => [status, answer, isUnsent]),
    [['FAILED', 'unserved', true]],
  );
  assert.deepEqual(saga.events, ['SAGA_RUNNING', 'SAGA_STUCK']);
});

test('a call that was open when a saga was given up stays in doubt; a person may let it be tried again', () => {
  const saga = new Driven(two);
  saga.claim();
  saga.on(givenUp);
  assert.deepEqual(
    saga.state.log.map(({ status, answer }) => [status, answer]),
    [
      ['TIMEOUT', 'unknown'],
      ['FAILED', 'unserved'],
    ],
  );
  const context = { now: saga.now, random: () => 0.5, serviceOf: saga.services };
  const retried = advanceByOperator(two, saga.state, { kind: 'retry', step: 0, by }, context);
  assert.ok(retried.outcome === 'settle');
  saga.state = retried.state;
  assert.equal(saga.claim(), 'reserve.Do #3');
});

test('an undo is given up where it stands, and nothing is FAILED', () => {
  const saga = new Driven(two);
  saga.claim();
  saga.answer(done);
  saga.answer(refused);
  saga.on(givenUp);
  assert.deepEqual(saga.state.stuck, { step: 0, op: 'COMPENSATE', reason: 'too often' });
  assert.equal(saga.state.status, 'COMPENSATING');
});

test('one attempt is left when all but one of the budget have failed', () => {
  const saga = new Driven(two);
  assert.equal(hasOneAttemptLeft(two, saga.state), false);
  for (const isLeft of [false, true, false]) {
    saga.claim();
    saga.answer(silence);
    assert.equal(hasOneAttemptLeft(two, saga.state), isLeft);
  }
});
