import assert from 'node:assert/strict';
import { test } from 'node:test';
import { advance } from './advance.ts';
import { advanceByOperator } from './advance-by-operator.ts';
import { AUTO_RESUME, resumeStuck, MAX_AUTO_RESUMES } from './resume-stuck.ts';
import {
  behindPivot,
  done,
  Driven,
  refused,
  silence,
  step,
  unsent,
  workflowOf,
} from '../../../tests/support/saga-model/driven-saga.ts';
import type { Workflow } from './workflow/workflow.ts';

const shortUndo = workflowOf(step('reserve', { undoForMs: 1 }), step('pay'));

/** Stuck at the undo of its first step. */
function stuckAtUndo(answer = unsent, workflow: Workflow = shortUndo): Driven {
  const saga = new Driven(workflow);
  saga.claim();
  saga.answer(done);
  saga.answer(refused);
  assert.equal(saga.answer(answer), 'ask: COMPENSATE 0');
  return saga;
}

function resume(saga: Driven, service = 'reserve'): boolean {
  const context = { now: saga.now, random: () => 0.5, serviceOf: saga.services };
  const resumed = resumeStuck(saga.workflow, saga.state, service, context);
  if (resumed !== null) saga.state = resumed.state;
  return resumed !== null;
}

test('a saga that is stuck because a service was down goes on when it is back, with a new budget', () => {
  const saga = stuckAtUndo();
  assert.equal(resume(saga, 'pay'), false, 'another service does not help');
  assert.equal(resume(saga), true);
  assert.deepEqual([saga.state.stuck, saga.state.log.at(-1)?.by?.actor], [null, AUTO_RESUME]);
  assert.equal(saga.claim(), 'reserve.Undo #2');
  assert.equal(saga.answer(done), 'FAILED');
  assert.equal(saga.state.compensation, 'done', 'nobody has resolved it by hand');
});

test('it goes on by itself three times at most', () => {
  const saga = stuckAtUndo();
  for (let times = 1; times <= MAX_AUTO_RESUMES; times += 1) {
    assert.equal(resume(saga), true, String(times));
    saga.claim();
    assert.equal(saga.answer(unsent), 'ask: COMPENSATE 0');
  }
  assert.equal(resume(saga), false);
});

test('where a person has acted it stays as it is', () => {
  const saga = stuckAtUndo();
  const by = { actor: 'ann', reason: 'looked' };
  const context = { now: saga.now, random: () => 0.5, serviceOf: saga.services };
  const acted = advanceByOperator(saga.workflow, saga.state, { kind: 'retry', step: 0, by }, context);
  assert.ok(acted.outcome === 'settle');
  saga.state = acted.state;
  saga.claim();
  assert.equal(saga.answer(unsent), 'ask: COMPENSATE 0');
  assert.equal(resume(saga), false);
});

test('what is stuck for another reason stays as it is: a refusal, a defect, an answer that says nothing about the service', () => {
  assert.equal(resume(stuckAtUndo(refused)), false);
  assert.equal(resume(stuckAtUndo({ ...refused, class: 'defect' })), false);
  assert.equal(resume(stuckAtUndo({ ...silence, isDown: false })), false);
});

test('after the pivot an action goes on only where its service bears a second call', () => {
  const [a, pivot, after] = behindPivot.steps;
  assert.ok(a && pivot && after);
  const workflow = workflowOf(a, pivot, { ...after, undoForMs: 1 });
  for (const isIdempotent of [true, false]) {
    const saga = new Driven(workflow, () => ({ isIdempotent }));
    saga.claim();
    saga.answer(done);
    saga.answer(done);
    assert.equal(saga.answer(unsent), 'ask: EXECUTE 2');
    assert.equal(resume(saga, 'after'), isIdempotent);
  }
});

test('an undo that may have worked goes on by itself only where its service is known to bear a second call', () => {
  const workflow = workflowOf(step('reserve', { undoForMs: 60_000 }), step('pay'));
  for (const isIdempotent of [true, false, undefined]) {
    let known: boolean | undefined = true;
    const saga = new Driven(workflow, () => (known === undefined ? undefined : { isIdempotent: known }));
    saga.claim();
    saga.answer(done);
    saga.answer(refused);
    assert.match(saga.answer(silence), /^wait/);
    // Then the service was down for longer than the undo is tried.
    const isDown = (): boolean => true;
    for (let times = 0; saga.state.stuck === null; times += 1) {
      assert.ok(times < 5);
      saga.now = Math.max(saga.now, saga.state.wakeAt ?? 0);
      const context = { now: saga.now, random: () => 0.5, serviceOf: saga.services, isDown };
      const waited = advance(workflow, saga.state, { kind: 'claimed' }, context);
      assert.ok(waited.outcome === 'settle');
      saga.state = waited.state;
    }
    assert.equal(saga.state.log.at(-1)?.answer, 'unavailable');
    known = isIdempotent;
    assert.equal(resume(saga), isIdempotent === true, String(isIdempotent));
  }
});
