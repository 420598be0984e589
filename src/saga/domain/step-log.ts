import type { Attempt, Op, Operator, Stuck } from './saga-state.ts';
import type { Workflow } from './workflow/workflow.ts';

/** Queries over a saga's log. The rows of one step and op are ordered by attempt. */
type Log = readonly Attempt[];

export function attemptsOf(log: Log, step: number, op: Op): readonly Attempt[] {
  return log.filter((row) => row.step === step && row.op === op);
}

/** Like `attemptsOf(…).some(…)` without building the list: this runs for every step of every transition. */
function hasAttempt(log: Log, step: number, op: Op, is: (row: Attempt) => boolean): boolean {
  return log.some((row) => row.step === step && row.op === op && is(row));
}

function isSuccessOrSkip({ status }: Attempt): boolean {
  return status === 'SUCCESS' || status === 'SKIPPED';
}

/** At most one: a saga makes one call at a time. */
export function openAttempt(log: Log): Attempt | undefined {
  return log.findLast((row) => row.status === null);
}

/** Done, or skipped by an operator. */
function isPassed(log: Log, step: number): boolean {
  return hasAttempt(log, step, 'EXECUTE', isSuccessOrSkip);
}

export function isDone(log: Log, step: number): boolean {
  return hasAttempt(log, step, 'EXECUTE', ({ status }) => status === 'SUCCESS');
}

/** The number of steps if all are passed. */
export function firstNotPassed(workflow: Workflow, log: Log): number {
  const step = workflow.steps.findIndex((_, index) => !isPassed(log, index));
  return step < 0 ? workflow.steps.length : step;
}

/**
 * One attempt with an unknown effect is enough, and a later refusal does not clear the doubt: it may apply to the
 * repeated call only. Only a done action, or an operator who knows that it did not happen, clears it.
 */
export function isInDoubt(log: Log, step: number): boolean {
  const isKnown = ({ answer }: Attempt): boolean => answer === 'done' || answer === 'not_done';
  return hasAttempt(log, step, 'EXECUTE', isOfUnknownEnd) && !hasAttempt(log, step, 'EXECUTE', isKnown);
}

/** The step's undo is done, or it has none. */
export function isUndone(log: Log, step: number): boolean {
  return hasAttempt(log, step, 'COMPENSATE', isSuccessOrSkip);
}

/** From its first attempt on. Attempts without a call do not count. */
export function isPivotOpened(workflow: Workflow, log: Log): boolean {
  return hasAttempt(
    log,
    pivotOf(workflow),
    'EXECUTE',
    ({ answer }) => answer !== 'unserved' && answer !== 'unavailable' && answer !== 'not_done',
  );
}

export function isPivotPassed(workflow: Pick<Workflow, 'steps'>, log: Log): boolean {
  return isPassed(log, pivotOf(workflow));
}

/** -1, which matches no attempt, if there is none. */
function pivotOf(workflow: Pick<Workflow, 'steps'>): number {
  return workflow.steps.findIndex(({ isPivot }) => isPivot);
}

/** An operator (or auto-resume) had the step retried after this failure. */
export function wasRetried({ by, answer }: Attempt): boolean {
  return by !== null && answer !== null && answer !== 'done' && answer !== 'not_done';
}

/** Written by an operator instead of a call. */
export function isByHand(row: Attempt): boolean {
  return row.by !== null && !wasRetried(row);
}

/** An operator's retry grants a fresh budget: earlier attempts no longer count. */
function sinceGrant(log: Log, step: number, op: Op): Log {
  const rows = attemptsOf(log, step, op);
  return rows.slice(rows.findLastIndex(wasRetried) + 1);
}

/** How many attempts were charged to the budget. */
export function spentAttempts(log: Log, step: number, op: Op): number {
  return sinceGrant(log, step, op).filter(({ spentMs }) => spentMs > 0).length;
}

/** The time charged to the budget, for attempts and for the waits between them. */
export function spentMs(log: Log, step: number, op: Op): number {
  return sinceGrant(log, step, op).reduce((sum, row) => sum + row.spentMs, 0);
}

/** A call was sent, its effect is unknown, and no operator has granted a retry since. */
export function hasUnknownEnd(log: Log, step: number, op: Op): boolean {
  return sinceGrant(log, step, op).some(isOfUnknownEnd);
}

/** The same over the whole log: granting a new budget does not settle the doubt. */
export function hasCallInDoubt(log: Log, step: number, op: Op): boolean {
  return hasAttempt(log, step, op, isOfUnknownEnd);
}

/**
 * Whether the stuck call may be repeated although no operator has looked at this saga. A call that may have taken effect
 * is repeated only if its service is configured and idempotent.
 */
export function isSafeToRepeat(
  service: Readonly<{ isIdempotent: boolean }> | undefined,
  log: Log,
  { step, op }: Pick<Stuck, 'step' | 'op'>,
): boolean {
  return service?.isIdempotent === true || !hasCallInDoubt(log, step, op);
}

function isOfUnknownEnd({ answer, isUnsent }: Attempt): boolean {
  return answer === 'unknown' && !isUnsent;
}

/** The next row of a step and op, open. */
export function nextAttempt(log: Log, step: number, op: Op, now: number): Attempt {
  const attempt = (attemptsOf(log, step, op).at(-1)?.attempt ?? 0) + 1;
  return {
    step,
    op,
    attempt,
    startedAt: now,
    status: null,
    answer: null,
    isUnsent: false,
    isLast: false,
    isDown: false,
    spentMs: 0,
    output: null,
    error: null,
    by: null,
  };
}

export function closedByHand(
  row: Attempt,
  by: Operator,
  end: Readonly<Pick<Attempt, 'status' | 'answer'> & { output?: unknown }>,
): Attempt {
  return { ...row, isUnsent: true, ...end, output: end.output ?? null, error: null, by };
}

export function replaced(log: Log, row: Attempt): Log {
  return log.map((each) =>
    each.step === row.step && each.op === row.op && each.attempt === row.attempt ? row : each,
  );
}
