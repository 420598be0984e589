import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stepStateOf, type StepState, type TriedOp, type TriedStep } from './step-states.ts';

const tried = (...facts: (keyof TriedOp)[]): TriedOp => ({
  isOpen: facts.includes('isOpen'),
  isDone: facts.includes('isDone'),
  isSkipped: facts.includes('isSkipped'),
  isUnknown: facts.includes('isUnknown'),
  isNotDone: facts.includes('isNotDone'),
});

const of = (step: Partial<TriedStep>): TriedStep => ({
  action: undefined,
  undo: undefined,
  stuck: null,
  ...step,
});

test('a step of a saga that goes forward is where its last attempt has left it', () => {
  const cases: readonly (readonly [Partial<TriedStep>, StepState])[] = [
    [{}, 'not_started'],
    [{ action: tried('isOpen') }, 'running'],
    [{ action: tried('isOpen', 'isUnknown') }, 'running'],
    [{ action: tried('isUnknown') }, 'retrying'],
    [{ action: tried() }, 'retrying'],
    [{ action: tried('isUnknown', 'isDone') }, 'done'],
    [{ action: tried('isUnknown', 'isSkipped') }, 'skipped'],
    [{ action: tried('isUnknown'), stuck: 'EXECUTE' }, 'stuck'],
  ];
  for (const [step, state] of cases) assert.equal(stepStateOf(of(step), true), state, JSON.stringify(step));
});

test('a step of a saga that is undone says what is left of it', () => {
  const cases: readonly (readonly [Partial<TriedStep>, StepState])[] = [
    [{}, 'not_started'],
    [{ action: tried('isDone') }, 'done'],
    [{ action: tried() }, 'failed'],
    [{ action: tried('isUnknown') }, 'in_doubt'],
    [{ action: tried('isUnknown', 'isNotDone') }, 'failed'],
    [{ action: tried('isDone'), undo: tried('isOpen') }, 'undoing'],
    [{ action: tried('isDone'), undo: tried('isUnknown') }, 'undoing'],
    [{ action: tried('isDone'), undo: tried('isUnknown', 'isDone') }, 'undone'],
    [{ action: tried('isDone'), undo: tried('isSkipped') }, 'undo_skipped'],
    [{ action: tried('isDone'), undo: tried('isUnknown'), stuck: 'COMPENSATE' }, 'stuck'],
  ];
  for (const [step, state] of cases) assert.equal(stepStateOf(of(step), false), state, JSON.stringify(step));
});
