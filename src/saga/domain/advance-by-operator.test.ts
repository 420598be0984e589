import assert from 'node:assert/strict';
import { test } from 'node:test';
import { advanceByOperator, type StepAction } from './advance-by-operator.ts';
import { advance, type EngineEvent } from './advance.ts';
import type { Context } from './settlement.ts';
import type { Answer } from './judge-answer.ts';
import type { SagaState } from './saga-state.ts';
import { newSaga } from '../../../tests/support/saga-model/new-saga.ts';
import type { Step, Workflow } from './workflow/workflow.ts';

const by = { actor: 'ann', reason: 'looked at the ledger' };
const done: Answer = { class: 'done', output: { id: 7 } };
const refused: Answer = { class: 'refused', detail: 'HTTP 422', isTimeout: false, isUnsent: false };
const silence: Answer = { class: 'unknown', detail: 'no answer', isTimeout: true, isUnsent: false };

const base: Step = {
  name: 'reserve',
  service: 'any',
  method: 'Any.Do',
  undo: { kind: 'call', method: 'Any.Undo' },
  isPivot: false,
  timeoutMs: 30_000,
  retry: { maxAttempts: 1, backoff: 'fixed', initialIntervalMs: 1000 },
  input: null,
  undoInput: null,
};
const pivot: Step = { ...base, name: 'dispatch', undo: { kind: 'absent' }, isPivot: true };
const after: Step = { ...base, name: 'notify', undo: { kind: 'absent' } };
const needing: Step = { ...after, name: 'report', input: { id: '${steps.notify.id}' } };
const workflow: Workflow = { name: 'order', deadlineMs: null, steps: [base, pivot, after, needing] };

const calledAt = 1000;
/** The last moment of a call that was opened then, and the first one after it. */
const quietAt = calledAt + 30_000 + 300_000 + 1;

function context(now: number, isIdempotent = false): Context {
  return { now, random: () => 0.5, serviceOf: () => ({ isIdempotent }) };
}

/** Answers one call after the other, all at the same time. */
function drive(answers: readonly Answer[], steps = workflow.steps): SagaState {
  const any = { ...workflow, steps };
  let state = newSaga(0, null);
  let event: EngineEvent = { kind: 'claimed' };
  for (const answer of [...answers, null]) {
    const decision = advance(any, state, event, context(calledAt));
    assert.ok(decision.outcome === 'settle');
    const { next } = decision;
    state = next.do === 'call' ? next.opening.state : decision.state;
    if (answer === null || next.do !== 'call') break;
    event = { kind: 'answered', ...next.call, answer };
  }
  return state;
}

function act(state: SagaState, what: StepAction, now = quietAt) {
  return advanceByOperator(workflow, state, what, context(now));
}

function settled(answer: ReturnType<typeof act>) {
  assert.ok(answer.outcome === 'settle', JSON.stringify(answer));
  return answer;
}

function refusal(answer: ReturnType<typeof act>): string {
  assert.ok(answer.outcome === 'refused');
  return answer.kind;
}

const stuckAtPivot = drive([done, silence]);
const stuckAfterPivot = drive([done, done, refused]);
const stuckAtUndo = drive([silence, silence]);

test('a person acts only on the step at which the saga is stuck', () => {
  assert.deepEqual(stuckAtPivot.stuck?.step, 1);
  for (const kind of ['retry', 'skip', 'resolve'] as const) {
    assert.equal(refusal(act(stuckAtPivot, { kind, step: 0, by })), 'conflict');
    assert.equal(refusal(act(newSaga(0, null), { kind, step: 0, by })), 'conflict');
  }
});

test('a retry marks the failure, and the next claim calls again with the next number and a fresh budget', () => {
  const { state, changed, next } = settled(act(stuckAtUndo, { kind: 'retry', step: 0, by }, calledAt));
  assert.deepEqual(next, { do: 'wait', until: calledAt });
  assert.deepEqual(
    changed.map((row) => [row.op, row.attempt, row.status, row.by]),
    [['COMPENSATE', 1, 'TIMEOUT', by]],
  );
  assert.deepEqual([state.status, state.compensation, state.stuck], ['COMPENSATING', 'running', null]);
  const again = advance(workflow, state, { kind: 'claimed' }, context(calledAt));
  assert.ok(again.outcome === 'settle' && again.next.do === 'call');
  assert.deepEqual([again.next.call.op, again.next.call.attempt], ['COMPENSATE', 2]);
  const failed: EngineEvent = { kind: 'answered', ...again.next.call, answer: silence };
  const fresh = advance(workflow, again.next.opening.state, failed, context(calledAt, true));
  assert.ok(fresh.outcome === 'settle');
  assert.equal(fresh.next.do, 'wait');
});

test('skip and resolve wait until no call of the step can still begin', () => {
  for (const kind of ['skip', 'resolve'] as const) {
    const what: StepAction = { kind, step: 1, by, outcome: 'done' };
    const early = act(stuckAtPivot, what, quietAt - 1);
    assert.ok(early.outcome === 'refused' && early.kind === 'conflict' && early.retryAfterMs === 1);
    settled(act(stuckAtPivot, what, quietAt));
  }
});

test('an undo that is resolved or skipped by hand ends the saga as resolved', () => {
  for (const [kind, status] of [
    ['resolve', 'SUCCESS'],
    ['skip', 'SKIPPED'],
  ] as const) {
    const { state, added, events } = settled(act(stuckAtUndo, { kind, step: 0, by }));
    assert.deepEqual([state.status, state.compensation], ['FAILED', 'resolved']);
    assert.deepEqual(
      added.map((row) => [row.op, row.attempt, row.status, row.by]),
      [['COMPENSATE', 2, status, by]],
    );
    assert.deepEqual(events, ['SAGA_FAILED']);
    assert.equal(state.errorMessage, 'reserve: no answer');
  }
});

test('a pivot that a person knows to be done goes on with the output, one that is not turns back', () => {
  const output = { id: 'd-1' };
  const done = settled(act(stuckAtPivot, { kind: 'resolve', step: 1, by, outcome: 'done', output }));
  assert.deepEqual(done.state.outputs['dispatch'], output);
  assert.deepEqual([done.state.status, done.state.currentStep], ['RUNNING', 2]);
  const not = settled(act(stuckAtPivot, { kind: 'resolve', step: 1, by, outcome: 'not_done' }));
  assert.deepEqual([not.state.status, not.state.compensation], ['COMPENSATING', 'running']);
  assert.equal(not.state.errorMessage, 'dispatch: no answer');
  assert.deepEqual(not.events, ['SAGA_COMPENSATING']);
  const undo = advance(workflow, not.state, { kind: 'claimed' }, context(quietAt));
  assert.ok(undo.outcome === 'settle' && undo.next.do === 'call');
  assert.deepEqual([undo.next.call.step, undo.next.call.op], [0, 'COMPENSATE']);
});

test('after the pivot nothing is not done, and what a later step needs is not skipped', () => {
  const notDone: StepAction = { kind: 'resolve', step: 2, by, outcome: 'not_done' };
  assert.equal(refusal(act(stuckAfterPivot, notDone)), 'semantic');
  assert.equal(refusal(act(stuckAfterPivot, { kind: 'skip', step: 2, by })), 'semantic');
  assert.equal(refusal(act(stuckAfterPivot, { kind: 'resolve', step: 2, by })), 'semantic');
  const { state } = settled(act(stuckAtPivot, { kind: 'skip', step: 1, by }));
  assert.deepEqual([state.status, state.currentStep, state.outputs], ['RUNNING', 2, { reserve: { id: 7 } }]);
});

test('a step from which a later one maps is resolved as done only with an output that has what is mapped', () => {
  const resolve = (output?: unknown) =>
    act(stuckAfterPivot, { kind: 'resolve', step: 2, by, outcome: 'done', output });
  for (const output of [undefined, null, {}, { other: 1 }, 'm-1', []]) {
    const answer = resolve(output);
    assert.ok(answer.outcome === 'refused', JSON.stringify(output));
    assert.equal(answer.kind, 'semantic');
    assert.match(answer.message, /report/);
  }
  const { state } = settled(resolve({ id: null }));
  assert.deepEqual([state.status, state.currentStep], ['RUNNING', 3]);
});

test('what only an undo leaves out where it is missing does not have to be in the output', () => {
  const steps = [
    { ...base, undo: { kind: 'absent' } as const },
    { ...base, name: 'next', undoInput: { id: '${steps.reserve.id}' } },
    { ...base, name: 'last', undo: { kind: 'call', method: 'POST /undo/${steps.reserve.place}' } as const },
  ];
  const stuck = drive([silence], steps);
  const resolve = (output?: unknown) =>
    advanceByOperator(
      { ...workflow, steps },
      stuck,
      { kind: 'resolve', step: 0, by, outcome: 'done', output },
      context(quietAt),
    );
  assert.equal(refusal(resolve()), 'semantic');
  assert.equal(refusal(resolve({ id: 1 })), 'semantic');
  settled(resolve({ place: 'a' }));
});

test('an undo that does not exist cannot be tried again', () => {
  const steps = [{ ...base, undo: { kind: 'absent' } as const }];
  const stuck = drive([silence], steps);
  const aborted = { ...stuck, stuck: null, abort: { kind: 'cancel', by, at: 1 } as const };
  const claimed = advance({ ...workflow, steps }, aborted, { kind: 'claimed' }, context(2));
  assert.ok(claimed.outcome === 'settle');
  assert.deepEqual(claimed.state.stuck, {
    step: 0,
    op: 'COMPENSATE',
    reason: 'it may have happened, and it has no undo',
  });
  assert.equal(refusal(act(claimed.state, { kind: 'retry', step: 0, by })), 'semantic');
});

test('a step in doubt without an undo can be tried again by a person', () => {
  const stuck = drive([silence], [{ ...base, undo: { kind: 'absent' } }]);
  assert.deepEqual([stuck.status, stuck.stuck?.op], ['RUNNING', 'EXECUTE']);
  assert.equal(settled(act(stuck, { kind: 'retry', step: 0, by })).state.status, 'RUNNING');
});

test('a saga that could not be read goes on at a retry, though nothing of its step was ever begun', () => {
  const unread: SagaState = {
    ...newSaga(0, null),
    stuck: { step: 0, op: 'EXECUTE', reason: 'it could not be read' },
  };
  const { state, added, changed } = settled(act(unread, { kind: 'retry', step: 0, by }));
  assert.deepEqual([state.stuck, added, changed], [null, [], []]);
  assert.equal(state.wakeAt, quietAt);
});
