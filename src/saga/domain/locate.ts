import { exhaustedReason } from './budget.ts';
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
  wasRetried,
} from './step-log.ts';
import type { Workflow } from './workflow/workflow.ts';

/** What a saga is doing, or has to do next. */
export type Position = Readonly<{
  /** Why the saga is being undone; null while it goes forward. */
  cause: string | null;
  what:
    | Readonly<{ at: 'in_flight'; attempt: Attempt }>
    /** A call is next; `last` is the previous attempt at it. */
    | Readonly<{ at: 'call'; step: number; op: Op; last: Attempt | null }>
    | Readonly<{ at: 'stuck'; step: number; op: Op; reason: string }>
    /** The step has nothing to undo: a SKIPPED row records that. */
    | Readonly<{ at: 'skip'; step: number }>
    | Readonly<{ at: 'end' }>;
}>;

type Log = SagaState['log'];
type What = Position['what'];
type Turn = Readonly<{ at: 'turn'; cause: string }>;

/** Depends on the log, an abort and the deadline only, neither on the time nor on the configuration. */
export function locate(workflow: Workflow, known: Known, log: Log): Position {
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

/** An abort counts until the pivot is opened. A request takes precedence over the deadline. */
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
  const flaw = last && flawOf(last, () => exhaustedReason(workflow, log, step, op));
  if (flaw === null) return { at: 'call', step, op, last };
  const hasWayBack = !isInDoubt(log, step) || workflow.steps[step]?.undo.kind !== 'absent';
  if (last?.answer === 'unserved' || !hasWayBack || isPivotPassed(workflow, log))
    return { at: 'stuck', step, op, reason: flaw };
  // If an operator resolved the step as not done, the cause is the failure before that.
  const failed = rows.findLast(({ answer }) => answer !== 'not_done' && answer !== 'unserved');
  return { at: 'turn', cause: `${nameOf(workflow, step)}: ${failed?.error ?? flaw}` };
}

/** Why the step is not called again automatically; null if it is. */
function flawOf(last: Attempt, overspentBudget: () => string | null): string | null {
  if (wasRetried(last)) return null;
  const said = last.error ?? last.by?.reason ?? 'no reason was given';
  if (last.answer !== 'unknown') return said;
  if (last.isLast) return `it may have happened, and it is not called again: ${said}`;
  const over = overspentBudget();
  return over === null ? null : `${over}: ${said}`;
}

/** In reverse order of the steps, one at a time. */
function lookBack(workflow: Workflow, log: Log): What {
  const step = workflow.steps.findLastIndex((_, index) => hasToBeUndone(log, index) && !isUndone(log, index));
  if (step < 0) return { at: 'end' };
  const kind = workflow.steps[step]?.undo.kind;
  if (kind === 'none' || (kind === 'absent' && isDone(log, step))) return { at: 'skip', step };
  const op = 'COMPENSATE';
  if (kind === 'absent') return { at: 'stuck', step, op, reason: 'it may have happened, and it has no undo' };
  const last = attemptsOf(log, step, op).at(-1) ?? null;
  const flaw = last && flawOf(last, () => exhaustedReason(workflow, log, step, op));
  return flaw === null ? { at: 'call', step, op, last } : { at: 'stuck', step, op, reason: flaw };
}

function hasToBeUndone(log: Log, step: number): boolean {
  return isDone(log, step) || isInDoubt(log, step);
}

function nameOf(workflow: Workflow, step: number): string {
  return workflow.steps[step]?.name ?? `step ${step}`;
}
