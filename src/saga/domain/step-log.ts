import type { Attempt, Op, Person } from './saga-state.ts';
import type { Workflow } from './workflow.ts';

/** What the log says about single steps. The rows of one step and op are in the order of their attempts. */
type Log = readonly Attempt[];

export function attemptsOf(log: Log, step: number, op: Op): readonly Attempt[] {
  return log.filter((row) => row.step === step && row.op === op);
}

/** As `attemptsOf(…).some(…)`, without the list: this is asked for every step at every decision. */
function hasAttempt(log: Log, step: number, op: Op, is: (row: Attempt) => boolean): boolean {
  return log.some((row) => row.step === step && row.op === op && is(row));
}

function isSuccessOrSkip({ status }: Attempt): boolean {
  return status === 'SUCCESS' || status === 'SKIPPED';
}

/** There is never more than one: a saga does one thing at a time. */
export function openAttempt(log: Log): Attempt | undefined {
  return log.findLast((row) => row.status === null);
}

/** It is done, or a person has said to go on without it. */
function isPassed(log: Log, step: number): boolean {
  return hasAttempt(log, step, 'EXECUTE', isSuccessOrSkip);
}

export function isDone(log: Log, step: number): boolean {
  return hasAttempt(log, step, 'EXECUTE', ({ status }) => status === 'SUCCESS');
}

/** The number of steps where all are. */
export function firstNotPassed(workflow: Workflow, log: Log): number {
  const step = workflow.steps.findIndex((_, index) => !isPassed(log, index));
  return step < 0 ? workflow.steps.length : step;
}

/**
 * One attempt of which nobody knows the end is enough, and no later refusal changes that: it may answer the repeated
 * call only. What clears it is the action being done, or a person who knows that it is not.
 */
export function isInDoubt(log: Log, step: number): boolean {
  const isKnown = ({ answer }: Attempt): boolean => answer === 'done' || answer === 'not_done';
  return hasAttempt(log, step, 'EXECUTE', isOfUnknownEnd) && !hasAttempt(log, step, 'EXECUTE', isKnown);
}

/** The step's undo is done, or there is none to be done. */
export function isUndone(log: Log, step: number): boolean {
  return hasAttempt(log, step, 'COMPENSATE', isSuccessOrSkip);
}

/** From the opening of its first attempt on; that its service is not configured opens nothing. */
export function isPivotOpened(workflow: Workflow, log: Log): boolean {
  return hasAttempt(
    log,
    pivotOf(workflow),
    'EXECUTE',
    ({ answer }) => answer !== 'unserved' && answer !== 'not_done',
  );
}

export function isPivotPassed(workflow: Workflow, log: Log): boolean {
  return isPassed(log, pivotOf(workflow));
}

/** -1, which no attempt has, where there is none. */
function pivotOf(workflow: Workflow): number {
  return workflow.steps.findIndex(({ isPivot }) => isPivot);
}

/** A person has let the step be tried again after this failure. */
export function wasRetried({ by, answer }: Attempt): boolean {
  return by !== null && answer !== null && answer !== 'done' && answer !== 'not_done';
}

/** A person did it in place of a call. */
export function isByHand(row: Attempt): boolean {
  return row.by !== null && !wasRetried(row);
}

/** A person's retry grants a fresh budget: what came before it no longer counts. */
function sinceGrant(log: Log, step: number, op: Op): Log {
  const rows = attemptsOf(log, step, op);
  return rows.slice(rows.findLastIndex(wasRetried) + 1);
}

/** How many attempts the budget has paid for. */
export function spentAttempts(log: Log, step: number, op: Op): number {
  return sinceGrant(log, step, op).length;
}

/** A call was sent, and nobody knows what has become of it; nor has a person said to try again. */
export function hasUnknownEnd(log: Log, step: number, op: Op): boolean {
  return sinceGrant(log, step, op).some(isOfUnknownEnd);
}

function isOfUnknownEnd({ answer, isUnsent }: Attempt): boolean {
  return answer === 'unknown' && !isUnsent;
}

/** The next row of a step and op, still open. */
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
    output: null,
    error: null,
    by: null,
  };
}

export function closedByHand(
  row: Attempt,
  by: Person,
  end: Readonly<Pick<Attempt, 'status' | 'answer'> & { output?: unknown }>,
): Attempt {
  return { ...row, isUnsent: true, ...end, output: end.output ?? null, error: null, by };
}

export function replaced(log: Log, row: Attempt): Log {
  return log.map((each) =>
    each.step === row.step && each.op === row.op && each.attempt === row.attempt ? row : each,
  );
}
