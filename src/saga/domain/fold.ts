import { locate, type Place } from './locate.ts';
import type { Compensation, Folded, Known, SagaState, Status } from './saga-state.ts';
import { firstNotPassed, isByHand, isPivotOpened } from './step-log.ts';
import type { Workflow } from './workflow.ts';

type Log = SagaState['log'];

/** Everything about a saga that its log says, given what the last settle knew of an abort and of the deadline. */
export function fold(workflow: Workflow, known: Known, log: Log): Folded {
  return foldAt(locate(workflow, known, log), workflow, known, log);
}

/** The same where its place is known already. */
export function foldAt(place: Place, workflow: Workflow, known: Known, log: Log): Folded {
  const { what } = place;
  return {
    status: statusOf(place, known, log),
    currentStep: firstNotPassed(workflow, log),
    outputs: outputsOf(workflow, log),
    compensation: compensationOf(place, log),
    errorMessage: place.cause,
    stuck: what.at === 'stuck' ? { step: what.step, op: what.op, reason: what.reason } : null,
    pivotOpened: isPivotOpened(workflow, log),
  };
}

function statusOf({ cause, what }: Place, { abort }: Known, log: Log): Status {
  if (cause !== null) {
    if (what.at !== 'end') return 'COMPENSATING';
    return abort?.kind === 'cancel' ? 'CANCELLED' : 'FAILED';
  }
  if (what.at === 'end') return 'COMPLETED';
  return log.length === 0 ? 'STARTED' : 'RUNNING';
}

function compensationOf({ cause, what }: Place, log: Log): Compensation {
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
