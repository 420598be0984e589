import { stepQuietAt } from './call-timing.ts';
import { missingIn, stepsThatNeed } from './workflow/check-steps.ts';
import { settlementOf, type Context, type Settlement } from './settlement.ts';
import type { Attempt, Operator, SagaState, Stuck } from './saga-state.ts';
import { attemptsOf, closedByHand, isPivotPassed, nextAttempt, replaced } from './step-log.ts';
import type { Workflow } from './workflow/workflow.ts';

/** What an operator does with a stuck step. The outcome applies to actions; resolving an undo means that it is done. */
export type StepDecision = Readonly<{ by: Operator }> &
  (
    | Readonly<{ kind: 'retry' }>
    | Readonly<{ kind: 'skip' }>
    | Readonly<{ kind: 'resolve'; outcome?: 'done' | 'not_done' | undefined; output?: unknown }>
  );

export type StepAction = StepDecision & Readonly<{ step: number }>;

/** `conflict`: not possible in this state, or not yet. `semantic`: never possible for this step. */
export type Refusal = Readonly<{
  outcome: 'refused';
  kind: 'conflict' | 'semantic';
  message: string;
  retryAfterMs?: number;
}>;

type Act<Kind extends StepAction['kind']> = Extract<StepAction, { kind: Kind }>;
type Saga = Readonly<{ workflow: Workflow; state: SagaState; context: Context; stuck: Stuck }>;

/** The transition that it causes. The call that may follow is made after the next claim. */
export function advanceByOperator(
  workflow: Workflow,
  state: SagaState,
  act: StepAction,
  context: Context,
): Settlement | Refusal {
  const { stuck } = state;
  if (stuck === null || stuck.step !== act.step)
    return refuse('conflict', `the saga does not need attention at this step: status=${state.status}`);
  const saga: Saga = { workflow, state, context, stuck };
  switch (act.kind) {
    case 'retry':
      return retry(saga, act);
    case 'skip':
      return skip(saga, act);
    case 'resolve':
      return resolve(saga, act);
  }
}

/** Marks the failure as retried, which grants a fresh budget. */
function retry(saga: Saga, { by }: Act<'retry'>): Settlement | Refusal {
  const { state, stuck } = saga;
  const last = attemptsOf(state.log, stuck.step, stuck.op).at(-1);
  // A saga that could not be read is stuck at an action that was never started.
  if (last === undefined && stuck.op === 'EXECUTE') return settlementOf(saga, state.log, 'until claimed');
  if (last === undefined) return refuse('semantic', 'the step has no undo to call: skip or resolve it');
  return settlementOf(saga, replaced(state.log, { ...last, by }), 'until claimed');
}

function skip(saga: Saga, { by }: Act<'skip'>): Settlement | Refusal {
  const { workflow, stuck } = saga;
  const needing =
    stuck.op === 'EXECUTE' ? stepsThatNeed(workflow.steps, workflow.steps[stuck.step]?.name ?? '') : [];
  if (needing.length > 0)
    return refuse('semantic', `its answer is needed by ${needing.join(', ')}: resolve it with an output`);
  return writeByHand(saga, by, { status: 'SKIPPED', answer: null });
}

function resolve(saga: Saga, { by, outcome, output }: Act<'resolve'>): Settlement | Refusal {
  const { workflow, state, stuck } = saga;
  if (stuck.op === 'COMPENSATE') return writeByHand(saga, by, { status: 'SUCCESS', answer: 'done' });
  if (outcome === 'done') return resolveAsDone(saga, by, output);
  if (outcome === undefined) return refuse('semantic', 'an action is resolved as done or as not_done');
  if (isPivotPassed(workflow, state.log))
    return refuse('semantic', 'after the pivot nothing can be undone: retry, skip, or resolve it as done');
  return writeByHand(saga, by, { status: 'FAILED', answer: 'not_done' });
}

/** Without the values that later steps map from its response, those steps could never be called. */
function resolveAsDone(saga: Saga, by: Operator, output: unknown): Settlement | Refusal {
  const { steps } = saga.workflow;
  const name = steps[saga.stuck.step]?.name ?? '';
  const needing = output === undefined ? stepsThatNeed(steps, name) : [];
  if (needing.length > 0)
    return refuse('semantic', `its answer is needed by ${needing.join(', ')}: resolve it with an output`);
  const missing = missingIn(steps, name, output);
  if (missing.length > 0)
    return refuse('semantic', `the output lacks what later steps need: ${missing.join(', ')}`);
  return writeByHand(saga, by, { status: 'SUCCESS', answer: 'done', output });
}

/** What the operator has checked holds only if no call can arrive later. */
function writeByHand(
  saga: Saga,
  by: Operator,
  end: Readonly<Pick<Attempt, 'status' | 'answer'> & { output?: unknown }>,
): Settlement | Refusal {
  const { workflow, state, context, stuck } = saga;
  const retryAfterMs = stepQuietAt(workflow, state, stuck.step) - context.now;
  if (retryAfterMs > 0)
    return {
      ...refuse('conflict', 'a call of this step may still arrive: wait until none can'),
      retryAfterMs,
    };
  const row = closedByHand(nextAttempt(state.log, stuck.step, stuck.op, context.now), by, end);
  return settlementOf(saga, [...state.log, row], 'until claimed');
}

function refuse(kind: Refusal['kind'], message: string): Refusal {
  return { outcome: 'refused', kind, message };
}
