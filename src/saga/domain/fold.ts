import { locate, type Position } from './locate.ts';
import type { Compensation, Folded, Known, SagaState, Status } from './saga-state.ts';
import { firstNotPassed, isByHand, isPivotOpened } from './step-log.ts';
import type { Workflow } from './workflow/workflow.ts';

type Log = SagaState['log'];

/** Derives the state from the log, given the abort and deadline that the last settle knew of. */
export function fold(workflow: Workflow, known: Known, log: Log): Folded {
  return foldAt(locate(workflow, known, log), workflow, known, log);
}

/** The same if the position is already known. */
export function foldAt(position: Position, workflow: Workflow, known: Known, log: Log): Folded {
  const { what } = position;
  return {
    status: statusOf(position, known, log),
    currentStep: firstNotPassed(workflow, log),
    outputs: outputsOf(workflow, log),
    compensation: compensationOf(position, log),
    errorMessage: position.cause,
    stuck: what.at === 'stuck' ? { step: what.step, op: what.op, reason: what.reason } : null,
    pivotOpened: isPivotOpened(workflow, log),
  };
}

function statusOf({ cause, what }: Position, { abort }: Known, log: Log): Status {
  if (cause !== null) {
    if (what.at !== 'end') return 'COMPENSATING';
    return abort?.kind === 'cancel' ? 'CANCELLED' : 'FAILED';
  }
  if (what.at === 'end') return 'COMPLETED';
  return log.length === 0 ? 'STARTED' : 'RUNNING';
}

function compensationOf({ cause, what }: Position, log: Log): Compensation {
  if (cause === null) return 'none';
  if (what.at === 'stuck') return 'stuck';
  if (what.at !== 'end') return 'running';
  const undos = log.filter(({ op }) => op === 'COMPENSATE');
  if (undos.length === 0) return 'none';
  return undos.some(isByHand) ? 'resolved' : 'done';
}

function outputsOf(workflow: Workflow, log: Log): Readonly<Record<string, unknown>> {
  const done = log.filter(({ op, status }) => op === 'EXECUTE' && status === 'SUCCESS');
  return Object.fromEntries(done.map(({ step, output }) => [workflow.steps[step]?.name ?? '', output]));
}
