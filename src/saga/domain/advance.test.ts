import assert from 'node:assert/strict';
import { test } from 'node:test';
import { advance } from './advance.ts';
import {
  behindPivot,
  done,
  Driven,
  refused,
  silence,
  step,
  two,
  unsent,
  workflowOf,
} from '../../../tests/support/saga-model/driven-saga.ts';
import { judgeMappingError } from './judge-answer.ts';
import { withKnown } from './saga-state.ts';
import { newSaga } from '../../../tests/support/saga-model/new-saga.ts';

test('each step follows the one before it in the same settle, and the answers are kept', () => {
  const saga = new Driven(two);
  assert.deepEqual(
    [saga.claim(), saga.answer(done), saga.answer({ class: 'done', output: null })],
    ['reserve.Do #1', 'pay.Do #1', 'COMPLETED'],
  );
  assert.deepEqual(saga.state.outputs, { reserve: { id: 7 }, pay: null });
  assert.equal(saga.state.currentStep, 2);
  assert.deepEqual(saga.events, ['SAGA_RUNNING', 'SAGA_COMPLETED']);
});

test('a refusal undoes what was done before it, latest first, and not the refused step', () => {
  const saga = new Driven(workflowOf(step('a'), step('b'), step('c')));
  saga.claim();
  saga.answer(done);
  saga.answer(done);
  assert.deepEqual(
    [saga.answer(refused), saga.answer(done), saga.answer(done)],
    ['b.Undo #1', 'a.Undo #1', 'FAILED'],
  );
  assert.equal(saga.state.errorMessage, 'c: HTTP 409');
  assert.equal(saga.state.currentStep, 2);
  assert.equal(saga.state.compensation, 'done');
  assert.deepEqual(saga.events, ['SAGA_RUNNING', 'SAGA_COMPENSATING', 'SAGA_FAILED']);
});

test('a first step that is refused leaves nothing to undo, and every status on the way is told', () => {
  const saga = new Driven(two);
  saga.claim();
  assert.equal(saga.answer(judgeMappingError('input.sku is missing')), 'FAILED');
  assert.equal(saga.state.compensation, 'none');
  assert.deepEqual(saga.events, ['SAGA_RUNNING', 'SAGA_COMPENSATING', 'SAGA_FAILED']);
});

test('the forward budget is the policy, an undo is tried for a day, up to five minutes apart', () => {
  const saga = new Driven(two);
  saga.claim();
  const waits: string[] = [saga.answer(silence)];
  saga.claim();
  waits.push(saga.answer(silence));
  saga.claim();
  assert.deepEqual(waits, ['wait 1000', 'wait 2000']);
  assert.equal(saga.answer(silence), 'reserve.Undo #1', 'a step in doubt is undone itself');
  const beganAt = saga.now;
  const undoWaits: string[] = [];
  for (let said = saga.answer(silence); said.startsWith('wait'); said = saga.answer(silence)) {
    undoWaits.push(said);
    saga.claim();
  }
  const seconds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300];
  assert.deepEqual(
    undoWaits.slice(0, seconds.length),
    seconds.map((wait) => `wait ${wait * 1000}`),
  );
  const triedMs = saga.now - beganAt;
  assert.ok(
    triedMs > 86_400_000 - 1000 && triedMs <= 86_400_000,
    `its last attempt is at the end: ${triedMs}`,
  );
  assert.match(saga.state.stuck?.reason ?? '', /^\d+ attempts in 1d failed: no answer$/);
  assert.equal(saga.state.status, 'COMPENSATING');
  assert.equal(saga.events.at(-1), 'SAGA_COMPENSATION_STUCK');
});

test('a fixed backoff stays what it is, and Retry-After is its lower bound', () => {
  const retry = { maxAttempts: 5, backoff: 'fixed', initialIntervalMs: 200 } as const;
  const saga = new Driven(workflowOf(step('a', { retry })));
  saga.claim();
  const waits = [saga.answer(silence)];
  saga.claim();
  waits.push(saga.answer(silence));
  saga.claim();
  waits.push(saga.answer({ ...silence, retryAfterMs: 9000 }));
  assert.deepEqual(waits, ['wait 200', 'wait 200', 'wait 9000']);
});

test('an attempt that was certainly not sent leaves no doubt, but costs an attempt', () => {
  const saga = new Driven(two);
  for (const wait of ['wait 1000', 'wait 2000']) {
    saga.claim();
    assert.equal(saga.answer(unsent), wait);
  }
  saga.claim();
  assert.equal(saga.answer(unsent), 'FAILED');
});

test('a refusal after an attempt of unknown end clears no doubt', () => {
  const saga = new Driven(two);
  saga.claim();
  saga.answer(silence);
  saga.claim();
  assert.equal(saga.answer(refused), 'reserve.Undo #1');
});

test('a lost worker is an attempt of unknown end, forward and back', () => {
  const saga = new Driven(workflowOf(step('a', { retry: { ...step('a').retry, maxAttempts: 1 } })));
  saga.claim();
  const lost = saga.on({ kind: 'worker_lost' });
  assert.deepEqual(
    lost.changed.map(({ status, answer, error }) => [status, answer, error]),
    [['TIMEOUT', 'unknown', 'worker lost']],
  );
  for (let attempts = 1; saga.state.stuck === null; attempts += 1) {
    assert.ok(attempts < 1000);
    // A row that was left open for a week was not tried for a week.
    if (attempts === 3) saga.now += 7 * 86_400_000;
    saga.on({ kind: 'worker_lost' });
    if (saga.state.stuck === null) saga.claim();
  }
  assert.deepEqual(saga.state.stuck.op, 'COMPENSATE');
  assert.ok(saga.state.log.length > 200, String(saga.state.log.length));
});

test('a claim that finds an open row nobody polls takes its worker for lost', () => {
  const saga = new Driven(two);
  saga.claim();
  assert.equal(saga.claim(), 'wait 1000');
  assert.equal(saga.state.log[0]?.error, 'worker lost');
});

test('a service that is not idempotent is not called again after an unknown end, not even if that shows late', () => {
  let isKnown = true;
  const services = () => (isKnown ? { isIdempotent: false } : undefined);
  const saga = new Driven(two, services);
  saga.claim();
  assert.equal(saga.answer(silence), 'reserve.Undo #1');
  assert.equal(saga.answer(silence), 'ask: COMPENSATE 0');
  const late = new Driven(two, services);
  late.claim();
  isKnown = false;
  assert.equal(late.answer(silence), 'wait 1000');
  isKnown = true;
  assert.equal(late.claim(), 'reserve.Undo #1');
});

test('a service that is gone from the configuration waits for a person, and a pivot there is not opened', () => {
  const saga = new Driven(
    workflowOf(step('a', { undo: { kind: 'absent' }, isPivot: true })),
    () => undefined,
  );
  assert.equal(saga.claim(), 'ask: EXECUTE 0');
  assert.deepEqual(saga.events, ['SAGA_RUNNING', 'SAGA_STUCK']);
  assert.equal(saga.state.pivotOpened, false);
  assert.equal(saga.abort('cancel'), 'stored');
  assert.equal(saga.claim(), 'CANCELLED');
});

test('a step in doubt without an undo asks a person, and goes on asking when the saga is cancelled', () => {
  const saga = new Driven(workflowOf(step('a'), step('b', { undo: { kind: 'absent' } })), () => ({
    isIdempotent: false,
  }));
  saga.claim();
  saga.answer(done);
  assert.equal(saga.answer(silence), 'ask: EXECUTE 1');
  assert.equal(saga.state.status, 'RUNNING');
  assert.equal(saga.abort('cancel'), 'stored');
  assert.equal(saga.claim(), 'ask: COMPENSATE 1');
  assert.deepEqual(saga.events.slice(-2), ['SAGA_COMPENSATING', 'SAGA_COMPENSATION_STUCK']);
});

test('a step that says it needs no undo is skipped, in doubt too; one without an undo only when it is done', () => {
  const saga = new Driven(
    workflowOf(step('a', { undo: { kind: 'absent' } }), step('b', { undo: { kind: 'none' } })),
    () => ({ isIdempotent: false }),
  );
  saga.claim();
  saga.answer(done);
  assert.equal(saga.answer(silence), 'FAILED');
  const undos = saga.state.log.filter(({ op }) => op === 'COMPENSATE');
  assert.deepEqual(
    undos.map(({ step: index, status }) => [index, status]),
    [
      [1, 'SKIPPED'],
      [0, 'SKIPPED'],
    ],
  );
});

test('a pivot that is refused turns back; one in doubt is tried as long as an undo, and asks', () => {
  const saga = new Driven(behindPivot);
  saga.claim();
  assert.equal(saga.answer(done), 'pivot.Do #1');
  assert.equal(saga.abort('cancel'), 'refused');
  assert.equal(saga.answer(refused), 'a.Undo #1');
  const other = new Driven(behindPivot);
  other.claim();
  other.answer(done);
  for (let attempt = 1; attempt < 10; attempt += 1) {
    assert.match(other.answer(silence), /^wait/);
    assert.equal(other.claim(), `pivot.Do #${attempt + 1}`);
  }
  assert.equal(other.answer(refused), 'ask: EXECUTE 1');
  assert.equal(other.events.at(-1), 'SAGA_STUCK');
});

test('after the pivot the deadline counts no more, and a refusal asks a person at once', () => {
  const saga = new Driven({ ...behindPivot, deadlineMs: 1000 });
  saga.claim();
  saga.answer(done);
  saga.now = 2000;
  saga.state = withKnown(saga.state, { abort: null, isDeadlineOver: true });
  assert.equal(saga.answer(done), 'after.Do #1');
  assert.equal(saga.answer(refused), 'ask: EXECUTE 2');
});

test('where no slot is free nothing is opened, and a later claim comes to the same call', () => {
  const context = { now: 5, random: () => 0, serviceOf: () => ({ isIdempotent: true }) };
  const first = advance(two, newSaga(0, null), { kind: 'claimed' }, context);
  assert.ok(first.outcome === 'settle');
  assert.deepEqual([first.state.status, first.state.log.length, first.state.wakeAt], ['STARTED', 0, 5]);
  const second = advance(two, first.state, { kind: 'claimed' }, context);
  assert.deepEqual(second, first);
});
