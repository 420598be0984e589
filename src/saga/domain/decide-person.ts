import { stepQuietAt } from './call-timing.ts';
import { stepsThatNeed } from './check-steps.ts';
import { settle, type Circumstances, type Settlement } from './decide.ts';
import type { Attempt, Person, SagaState, Stuck } from './saga-state.ts';
import { attemptsOf, closedByHand, isPivotPassed, nextAttempt, replaced } from './step-log.ts';
import type { Workflow } from './workflow.ts';

/** What a person does with the step at which a saga is stuck. The outcome is for an action; an undo that is resolved is done. */
export type PersonAct = Readonly<{ step: number; by: Person }> &
  (
    | Readonly<{ kind: 'retry' }>
    | Readonly<{ kind: 'skip' }>
    | Readonly<{ kind: 'resolve'; outcome?: 'done' | 'not_done' | undefined; output?: unknown }>
  );

/** `conflict`: not in this state of the saga, or not yet. `semantic`: never for this step. */
export type PersonRefusal = Readonly<{
  outcome: 'refused';
  kind: 'conflict' | 'semantic';
  message: string;
  retryAfterMs?: number;
}>;

type Act<Kind extends PersonAct['kind']> = Extract<PersonAct, { kind: Kind }>;
type Saga = Readonly<{ workflow: Workflow; state: SagaState; around: Circumstances; stuck: Stuck }>;

/** What follows from it. Nothing is called from here: whoever claims the saga next does that. */
export function decidePerson(
  workflow: Workflow,
  state: SagaState,
  act: PersonAct,
  around: Circumstances,
): Settlement | PersonRefusal {
  const { stuck } = state;
  if (stuck === null || stuck.step !== act.step)
    return refuse('conflict', `the saga does not wait for a person at this step: status=${state.status}`);
  const saga: Saga = { workflow, state, around, stuck };
  switch (act.kind) {
    case 'retry':
      return retry(saga, act);
    case 'skip':
      return skip(saga, act);
    case 'resolve':
      return resolve(saga, act);
  }
}

/** The failure is marked, and the budget begins anew after it. */
function retry(saga: Saga, { by }: Act<'retry'>): Settlement | PersonRefusal {
  const { state, stuck } = saga;
  const last = attemptsOf(state.log, stuck.step, stuck.op).at(-1);
  // A saga that could not even be read is stuck at an action that was never begun.
  if (last === undefined && stuck.op === 'EXECUTE') return settle(saga, state.log, 'until claimed');
  if (last === undefined) return refuse('semantic', 'there is no undo to be called: skip or resolve it');
  return settle(saga, replaced(state.log, { ...last, by }), 'until claimed');
}

function skip(saga: Saga, { by }: Act<'skip'>): Settlement | PersonRefusal {
  const { workflow, stuck } = saga;
  const needing =
    stuck.op === 'EXECUTE' ? stepsThatNeed(workflow.steps, workflow.steps[stuck.step]?.name ?? '') : [];
  if (needing.length > 0)
    return refuse('semantic', `its answer is needed by ${needing.join(', ')}: resolve it with an output`);
  return writeByHand(saga, by, { status: 'SKIPPED', answer: null });
}

function resolve(saga: Saga, { by, outcome, output }: Act<'resolve'>): Settlement | PersonRefusal {
  const { workflow, state, stuck } = saga;
  if (stuck.op === 'COMPENSATE') return writeByHand(saga, by, { status: 'SUCCESS', answer: 'done' });
  if (outcome === 'done') return writeByHand(saga, by, { status: 'SUCCESS', answer: 'done', output });
  if (outcome === undefined) return refuse('semantic', 'an action is resolved as done or as not_done');
  if (isPivotPassed(workflow, state.log))
    return refuse('semantic', 'after the pivot nothing can be undone: retry, skip, or resolve it as done');
  return writeByHand(saga, by, { status: 'FAILED', answer: 'not_done' });
}

/** What a person has seen holds only if no call can arrive after that. */
function writeByHand(
  saga: Saga,
  by: Person,
  end: Readonly<Pick<Attempt, 'status' | 'answer'> & { output?: unknown }>,
): Settlement | PersonRefusal {
  const { workflow, state, around, stuck } = saga;
  const retryAfterMs = stepQuietAt(workflow, state, stuck.step) - around.now;
  if (retryAfterMs > 0)
    return {
      ...refuse('conflict', 'a call of this step may still arrive: wait until none can'),
      retryAfterMs,
    };
  const row = closedByHand(nextAttempt(state.log, stuck.step, stuck.op, around.now), by, end);
  return settle(saga, [...state.log, row], 'until claimed');
}

function refuse(kind: PersonRefusal['kind'], message: string): PersonRefusal {
  return { outcome: 'refused', kind, message };
}
