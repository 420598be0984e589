import assert from 'node:assert/strict';
import { test } from 'node:test';
import { done, Driven, refused, silence, two } from '../../../tests/support/saga-model/driven-saga.ts';
import { decidingError } from './deciding-error.ts';

test('it is the error of the step, not of its undo, while the saga is undone', () => {
  const saga = new Driven(two);
  assert.equal(decidingError(saga.state), null);
  saga.claim();
  saga.answer(done);
  assert.equal(decidingError(saga.state), null);
  saga.answer(refused);
  const error = decidingError(saga.state);
  assert.match(error ?? '', /^HTTP 409/);
  saga.answer(silence);
  assert.equal(decidingError(saga.state), error);
});

test('it is the error of the undo once the saga is stuck at it', () => {
  const saga = new Driven(two);
  saga.claim();
  saga.answer(done);
  saga.answer({ class: 'refused', detail: 'first', isTimeout: false, isUnsent: false });
  saga.answer({ class: 'refused', detail: 'second', isTimeout: false, isUnsent: false });
  assert.equal(saga.state.stuck?.op, 'COMPENSATE');
  assert.equal(decidingError(saga.state), 'second');
});

test('an undo that a person asked for has none, one for the deadline has that', () => {
  const { state } = new Driven(two);
  const undone = { ...state, stuck: null, log: [] };
  const abort = { kind: 'cancel', by: { actor: 'ann', reason: 'no' }, at: 0 } as const;
  assert.equal(decidingError({ ...undone, abort, errorMessage: 'cancelled by ann: no' }), null);
  assert.equal(
    decidingError({ ...undone, abort: null, errorMessage: 'the deadline is over' }),
    'the deadline is over',
  );
});
