import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  behindPivot,
  done,
  Driven,
  openOf,
  refused,
  silence,
  two,
  unsent,
} from '../../../tests/support/saga-model/driven-saga.ts';
import { judgeMappingError } from './judge-answer.ts';
import { withKnown } from './saga-state.ts';

test('a saga that is cancelled before anything was opened ends at once', () => {
  const saga = new Driven(two);
  assert.equal(saga.abort('cancel'), 'stored');
  assert.equal(saga.abort('compensate'), 'unchanged', 'the first wish stands');
  assert.equal(saga.claim(), 'CANCELLED');
  assert.equal(saga.state.errorMessage, 'cancelled by ann: wrong order');
  assert.deepEqual(saga.events, ['SAGA_CANCELLED']);
  assert.equal(saga.abort('cancel'), 'refused');
});

test('a running call ends before an abort takes effect, and what it did is undone', () => {
  const saga = new Driven(two);
  saga.claim();
  saga.answer(done);
  assert.equal(saga.abort('compensate'), 'stored');
  assert.equal(saga.answer(done), 'pay.Undo #1');
  assert.equal(saga.abort('cancel'), 'unchanged', 'it is being undone already');
  assert.deepEqual([saga.answer(done), saga.answer(done)], ['reserve.Undo #1', 'FAILED']);
});

test('a last step that ends after the deadline does not complete the saga', () => {
  const saga = new Driven({ ...two, deadlineMs: 5000 });
  saga.claim();
  saga.answer(done);
  saga.state = withKnown(saga.state, { abort: null, isDeadlineOver: true });
  assert.equal(saga.answer(done), 'pay.Undo #1');
  assert.equal(saga.state.errorMessage, 'the deadline is over');
});

test('a saga that waits wakes at its deadline', () => {
  const saga = new Driven({ ...two, deadlineMs: 400 });
  saga.claim();
  assert.equal(saga.answer(silence), 'wait 400');
});

test('work that takes long is polled with the same attempt, ever more slowly, for an hour', () => {
  const saga = new Driven(two);
  saga.claim();
  const seconds = [1, 2, 4, 8, 16, 30, 30];
  for (const wait of seconds) {
    assert.equal(saga.answer({ class: 'working' }), `wait ${wait * 1000}`);
    assert.equal(saga.claim(), 'poll reserve.Do #1');
  }
  assert.equal(saga.answer({ class: 'working', retryAfterMs: 45_000 }), 'wait 45000');
  assert.equal(saga.state.log.length, 1);
  saga.now = 3_600_000;
  assert.equal(saga.claim(), 'wait 1000');
  assert.deepEqual([saga.state.log[0]?.status, saga.state.log[0]?.answer], ['TIMEOUT', 'unknown']);
});

test('as many failed polls in a row as the step has attempts close it in doubt, even if none was sent', () => {
  const saga = new Driven(two);
  saga.claim();
  saga.answer({ class: 'working' });
  for (const answer of [unsent, silence, { class: 'working' } as const, unsent, judgeMappingError('no')]) {
    assert.equal(saga.claim(), 'poll reserve.Do #1');
    assert.match(saga.answer(answer), /^wait/);
  }
  saga.claim();
  assert.equal(saga.answer(unsent), 'wait 1000');
  const [row] = saga.state.log;
  assert.deepEqual([row?.status, row?.answer, row?.isUnsent], ['TIMEOUT', 'unknown', false]);
});

test('a polled action is closed at once by an abort, in doubt; a polled undo goes on', () => {
  const saga = new Driven(two);
  saga.claim();
  saga.answer({ class: 'working' });
  saga.abort('cancel');
  assert.equal(saga.claim(), 'reserve.Undo #1');
  assert.equal(saga.answer({ class: 'working' }), 'wait 1000');
  assert.equal(saga.claim(), 'poll reserve.Undo #1');
  assert.equal(saga.answer(done), 'CANCELLED');
});

test('an attempt may begin until its timeout and five minutes are over, an action before the pivot not beyond the deadline', () => {
  const saga = new Driven({ ...behindPivot, deadlineMs: 60_000 });
  saga.now = 10_000;
  const settled = [
    saga.on({ kind: 'claimed' }),
    saga.on({ kind: 'answered', ...openOf(saga.state), answer: done }),
    saga.on({ kind: 'answered', ...openOf(saga.state), answer: done }),
  ];
  const begins = settled.map(({ next }) => next.do === 'call' && [next.call.method, next.call.latestBegin]);
  assert.deepEqual(begins, [
    ['a.Do', 60_000],
    ['pivot.Do', 340_000],
    ['after.Do', 340_000],
  ]);
  const undoing = new Driven({ ...two, deadlineMs: 60_000 });
  undoing.now = 10_000;
  undoing.claim();
  undoing.answer(done);
  const { next } = undoing.on({ kind: 'answered', ...openOf(undoing.state), answer: refused });
  assert.ok(next.do === 'call' && next.call.latestBegin === 340_000);
});
