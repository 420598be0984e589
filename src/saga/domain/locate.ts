import type { Attempt, Known, Op, SagaState } from './saga-state.ts';
import {
  attemptsOf,
  firstNotPassed,
  isDone,
  isInDoubt,
  isPivotOpened,
  isPivotPassed,
  isUndone,
  openAttempt,
  spentAttempts,
  wasRetried,
} from './step-log.ts';
import type { Workflow } from './workflow.ts';

/** An undo has its own budget, apart from the action's; and so has whatever can no longer be undone. */
export const UNDO_ATTEMPTS = 10;

/** Where a saga stands. */
export type Place = Readonly<{
  /** Why everything is to be undone; null while it goes forward. */
  cause: string | null;
  what:
    | Readonly<{ at: 'in_flight'; attempt: Attempt }>
    /** A call is next; after `last`, where there was one. */
    | Readonly<{ at: 'call'; step: number; op: Op; last: Attempt | null }>
    | Readonly<{ at: 'stuck'; step: number; op: Op; reason: string }>
    /** The undo of this step is nothing but a row that says so. */
    | Readonly<{ at: 'skip'; step: number }>
    | Readonly<{ at: 'end' }>;
}>;

type Log = SagaState['log'];
type What = Place['what'];
type Turn = Readonly<{ at: 'turn'; cause: string }>;

/** Where the log, an abort and the deadline put a saga. Nothing else counts, neither the time nor the configuration. */
export function locate(workflow: Workflow, known: Known, log: Log): Place {
  const open = openAttempt(log);
  if (open?.op === 'EXECUTE') return { cause: null, what: { at: 'in_flight', attempt: open } };
  const forward = lookForward(workflow, log);
  const cause = forward.at === 'turn' ? forward.cause : abortCause(workflow, known, log);
  if (cause !== null) {
    const what: What = open ? { at: 'in_flight', attempt: open } : lookBack(workflow, log);
    return { cause, what };
  }
  return { cause, what: forward as What };
}

/** How many calls one step may take, until a person grants more. */
export function budgetOf(workflow: Workflow, log: Log, step: number, op: Op): number {
  const isLimited = op === 'EXECUTE' && !isForwardOnly(workflow, log, step);
  return isLimited ? (workflow.steps[step]?.retry.maxAttempts ?? 1) : UNDO_ATTEMPTS;
}

/** Beyond the point of no return, and at it as soon as nobody knows whether it has been crossed. */
export function isForwardOnly(workflow: Workflow, log: Log, step: number): boolean {
  const isAtPivot = workflow.steps[step]?.isPivot === true;
  return isPivotPassed(workflow, log) || (isAtPivot && isInDoubt(log, step));
}

/** An abort is heard until the pivot is opened; who asked comes before the deadline, which asks nobody. */
function abortCause(workflow: Workflow, { abort, isDeadlineOver }: Known, log: Log): string | null {
  if (isPivotOpened(workflow, log)) return null;
  if (abort !== null) {
    const wish = abort.kind === 'cancel' ? 'cancelled' : 'compensation was asked for';
    return `${wish} by ${abort.by.actor}: ${abort.by.reason}`;
  }
  return isDeadlineOver ? 'the deadline is over' : null;
}

function lookForward(workflow: Workflow, log: Log): What | Turn {
  const step = firstNotPassed(workflow, log);
  if (step === workflow.steps.length) return { at: 'end' };
  const op = 'EXECUTE';
  const rows = attemptsOf(log, step, op);
  const last = rows.at(-1) ?? null;
  const flaw = last && flawOf(last, spentAttempts(log, step, op), budgetOf(workflow, log, step, op));
  if (flaw === null) return { at: 'call', step, op, last };
  const hasWayBack = !isInDoubt(log, step) || workflow.steps[step]?.undo.kind !== 'absent';
  if (last?.answer === 'unserved' || !hasWayBack || isPivotPassed(workflow, log))
    return { at: 'stuck', step, op, reason: flaw };
  // What a person says is an end, but not the cause: that is why a person was asked.
  const failed = rows.findLast(({ answer }) => answer !== 'not_done' && answer !== 'unserved');
  return { at: 'turn', cause: `${nameOf(workflow, step)}: ${failed?.error ?? flaw}` };
}

/** Why no further call of this step follows by itself; null where one does. */
function flawOf(last: Attempt, spent: number, budget: number): string | null {
  if (wasRetried(last)) return null;
  const said = last.error ?? last.by?.reason ?? 'no reason was given';
  if (last.answer !== 'unknown') return said;
  if (last.isLast) return `the service is not idempotent, and nobody knows the end of this call: ${said}`;
  return spent >= budget ? `${spent} of ${budget} attempts failed: ${said}` : null;
}

/** In reverse order of start, one at a time. */
function lookBack(workflow: Workflow, log: Log): What {
  const step = workflow.steps.findLastIndex((_, index) => hasToBeUndone(log, index) && !isUndone(log, index));
  if (step < 0) return { at: 'end' };
  const kind = workflow.steps[step]?.undo.kind;
  if (kind === 'none' || (kind === 'absent' && isDone(log, step))) return { at: 'skip', step };
  const op = 'COMPENSATE';
  if (kind === 'absent') return { at: 'stuck', step, op, reason: 'it may have happened, and it has no undo' };
  const last = attemptsOf(log, step, op).at(-1) ?? null;
  const flaw = last && flawOf(last, spentAttempts(log, step, op), UNDO_ATTEMPTS);
  return flaw === null ? { at: 'call', step, op, last } : { at: 'stuck', step, op, reason: flaw };
}

function hasToBeUndone(log: Log, step: number): boolean {
  return isDone(log, step) || isInDoubt(log, step);
}

function nameOf(workflow: Workflow, step: number): string {
  return workflow.steps[step]?.name ?? `step ${step}`;
}
