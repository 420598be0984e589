import assert from 'node:assert/strict';
import { fold } from '../../../src/saga/domain/fold.ts';
import type { Published } from '../../../src/saga/domain/settlement.ts';
import type { Attempt, Op, SagaState, Status } from '../../../src/saga/domain/saga-state.ts';
import type { Step, Workflow } from '../../../src/saga/domain/workflow/workflow.ts';

/**
 * What must hold after every settle, read off the log by rules of their own: nothing here asks the code under test,
 * but for the comparison with fold.
 */
export type Change = Readonly<{
  workflow: Workflow;
  before: SagaState;
  after: SagaState;
  events: readonly Published[];
  isIdempotent: (service: string) => boolean;
}>;

const transitions: Readonly<Record<Status, readonly Status[]>> = {
  STARTED: ['RUNNING', 'CANCELLED', 'FAILED'],
  RUNNING: ['COMPLETED', 'COMPENSATING'],
  COMPENSATING: ['FAILED', 'CANCELLED'],
  COMPLETED: [],
  FAILED: [],
  CANCELLED: [],
};

export function checkInvariants(change: Change): void {
  checkTransitions(change);
  checkFold(change);
  checkHistory(change);
  for (const row of newRows(change)) {
    if (row.by !== null) continue;
    if (row.answer === 'unavailable') checkPatience(change, row);
    if (row.op === 'EXECUTE') checkNewAction(change, row);
    else checkNewUndo(change, row);
  }
  change.workflow.steps.forEach((_, step) => checkBudgets(change, step));
  checkStop(change);
  checkEnd(change);
}

/** Every status on the way is an event, and every way is one of those listed. */
function checkTransitions({ before, after, events }: Change): void {
  let at = before.status;
  for (const event of events) {
    const to = event.slice('SAGA_'.length) as Status;
    if (!(to in transitions)) continue;
    assert.ok(transitions[at].includes(to), `${at} -> ${to}`);
    at = to;
  }
  assert.equal(at, after.status);
  if (before.status === 'STARTED' && after.status !== 'RUNNING')
    assert.ok(
      after.log.every(({ answer }) => answer === 'unavailable'),
      'it ends although something was opened',
    );
  const told = events.filter((event) => event.endsWith('STUCK'));
  const isNew =
    after.stuck !== null && (before.stuck?.step !== after.stuck.step || before.stuck.op !== after.stuck.op);
  const name = after.stuck?.op === 'EXECUTE' ? 'SAGA_STUCK' : 'SAGA_COMPENSATION_STUCK';
  assert.deepEqual(told, isNew ? [name] : []);
}

function checkFold({ workflow, after }: Change): void {
  const { status, currentStep, outputs, compensation, errorMessage, stuck, pivotOpened } = after;
  const stored = { status, currentStep, outputs, compensation, errorMessage, stuck, pivotOpened };
  assert.deepEqual(fold(workflow, after, after.log), stored);
}

/** What a closed row may still be given. */
const marks = { by: null, isLast: false };

function checkHistory({ workflow, before, after }: Change): void {
  assert.ok(after.log.length >= before.log.length, 'the log lost a row');
  before.log.forEach((row, index) => {
    const now = after.log[index];
    if (row.status !== null)
      assert.deepEqual({ ...now, ...marks }, { ...row, ...marks }, 'a closed row changed');
  });
  const names = new Map<string, number>();
  for (const { step, op, attempt } of after.log) {
    const last = names.get(`${step} ${op}`) ?? 0;
    assert.equal(attempt, last + 1, 'attempts are numbered without a gap');
    names.set(`${step} ${op}`, attempt);
  }
  assert.ok(after.log.filter(({ status }) => status === null).length <= 1, 'two attempts are open');
  if (before.pivotOpened) assert.ok(after.pivotOpened);
  const pivot = workflow.steps.findIndex(({ isPivot }) => isPivot);
  const tries = rowsOf(after.log, pivot, 'EXECUTE').filter(
    ({ answer }) => answer !== 'unserved' && answer !== 'unavailable' && answer !== 'not_done',
  );
  assert.equal(after.pivotOpened, tries.length > 0, 'the pivot is opened by its first attempt');
  if (before.errorMessage !== null) assert.equal(after.errorMessage, before.errorMessage);
  if (before.abort !== null) assert.deepEqual(after.abort, before.abort);
}

function newRows({ before, after }: Change): readonly Attempt[] {
  return after.log.slice(before.log.length);
}

function rowsOf(log: readonly Attempt[], step: number, op: Op): readonly Attempt[] {
  return log.filter((row) => row.step === step && row.op === op);
}

function isPassed(log: readonly Attempt[], step: number): boolean {
  return rowsOf(log, step, 'EXECUTE').some(({ status }) => status === 'SUCCESS' || status === 'SKIPPED');
}

function isUndone(log: readonly Attempt[], step: number): boolean {
  return rowsOf(log, step, 'COMPENSATE').some(({ status }) => status === 'SUCCESS' || status === 'SKIPPED');
}

/** It was sent, or may have been, and neither was every attempt refused nor does a person know better. */
function mayHaveHappened(log: readonly Attempt[], step: number): boolean {
  const rows = rowsOf(log, step, 'EXECUTE');
  if (rows.some(({ status }) => status === 'SUCCESS')) return true;
  if (rows.some(({ answer }) => answer === 'not_done')) return false;
  return rows.some(({ answer, status, isUnsent }) => (status === null || answer === 'unknown') && !isUnsent);
}

/** A step gives up waiting for its service only when it has waited for as long as it says. */
function checkPatience({ workflow, before }: Change, { step, op, startedAt }: Attempt): void {
  const { undoForMs = UNDO_FOR_MS, waitForServiceMs = 3_600_000, service } = workflow.steps[step] as Step;
  assert.equal(before.waiting?.service, service);
  const waitedMs = startedAt - (before.waiting?.since ?? startedAt);
  const isUndo = op === 'COMPENSATE';
  assert.ok(
    waitedMs >= (isUndo ? undoForMs : Math.min(undoForMs, waitForServiceMs)),
    `waited ${waitedMs} ms`,
  );
}

function checkNewAction({ workflow, after }: Change, row: Attempt): void {
  for (let step = 0; step < row.step; step += 1)
    assert.ok(isPassed(after.log, step), `step ${row.step} starts before step ${step} is done`);
  const earlier = after.log.slice(0, after.log.indexOf(row));
  assert.ok(!earlier.some(({ op }) => op === 'COMPENSATE'), 'an action after the first undo');
  if (row.answer === 'unavailable') return;
  assert.equal(after.errorMessage, null);
  if (row.answer === 'unserved') return;
  assert.equal(after.abort, null, 'an action is opened after an abort');
  const pivot = workflow.steps.findIndex(({ isPivot }) => isPivot);
  const wasOpened = rowsOf(after.log, pivot, 'EXECUTE').some(
    (each) => each !== row && each.answer !== 'unserved' && each.answer !== 'unavailable',
  );
  if (!wasOpened) assert.ok(!after.isDeadlineOver, 'an action is opened after the deadline');
}

function checkNewUndo({ workflow, after }: Change, row: Attempt): void {
  const { log } = after;
  assert.ok(mayHaveHappened(log, row.step), 'an undo without cause');
  for (let step = row.step + 1; step < workflow.steps.length; step += 1)
    assert.ok(!mayHaveHappened(log, step) || isUndone(log, step), 'an undo before that of a later step');
  assert.equal(rowsOf(log, row.step, 'COMPENSATE').filter(({ status }) => status === 'SUCCESS').length, 0);
  assert.ok(
    !log.some(({ op, status }) => op === 'EXECUTE' && status === null),
    'an undo while an action runs',
  );
  const pivot = workflow.steps.findIndex(({ isPivot }) => isPivot);
  const isCrossed = isPassed(log, pivot) || mayHaveHappened(log, pivot);
  if (after.pivotOpened) assert.ok(!isCrossed, 'an undo behind the pivot');
  const { undo } = workflow.steps[row.step] as Step;
  if (row.status === 'SKIPPED') {
    const isDone = rowsOf(log, row.step, 'EXECUTE').some(({ status }) => status === 'SUCCESS');
    assert.ok(
      undo.kind === 'none' || (undo.kind === 'absent' && isDone),
      'an undo is skipped without a reason',
    );
  } else assert.equal(undo.kind, 'call');
}

const UNDO_FOR_MS = 86_400_000;

/** The calls since a person last granted a budget; nothing is tried again but what nobody knows the end of. */
function sinceGrant(log: readonly Attempt[], step: number, op: Op): readonly Attempt[] {
  const rows = rowsOf(log, step, op).filter(
    ({ by, answer }) => by === null || (answer !== null && answer !== 'done' && answer !== 'not_done'),
  );
  const granted = rows.slice(rows.findLastIndex(({ by }) => by !== null) + 1);
  return granted.filter(({ answer }) => answer !== 'unserved' && answer !== 'unavailable');
}

function checkBudgets({ workflow, after, isIdempotent }: Change, step: number): void {
  const { log } = after;
  const { retry, isPivot, service, undoForMs = UNDO_FOR_MS } = workflow.steps[step] as Step;
  const pivot = workflow.steps.findIndex((each) => each.isPivot);
  const isForwardOnly = (actions: readonly Attempt[]): boolean =>
    (pivot >= 0 && step > pivot) ||
    (isPivot && actions.some(({ answer, isUnsent }) => answer === 'unknown' && !isUnsent));
  const actions = rowsOf(log, step, 'EXECUTE');
  for (const op of ['EXECUTE', 'COMPENSATE'] as const) {
    const rows = sinceGrant(log, step, op);
    const isTimed = op === 'COMPENSATE' || isForwardOnly(actions);
    const budget = isTimed ? undoForMs : retry.maxAttempts;
    const charged = rows.filter(({ status, spentMs }) => status !== null && spentMs > 0);
    const spent = isTimed ? charged.reduce((sum, { spentMs }) => sum + spentMs, 0) : charged.length;
    const isOpen = rows.some(({ status }) => status === null);
    // The doubt that gives a pivot its budget in time may come with the last attempt, which a count had allowed.
    const wasTimed = op === 'COMPENSATE' || isForwardOnly(actions.slice(0, -1));
    const isWithin = isOpen
      ? spent < budget
      : wasTimed
        ? spent <= budget + LONGEST_MS
        : charged.length <= retry.maxAttempts;
    assert.ok(isWithin, `${spent} of ${budget} spent: ${op}`);
    if (op === 'COMPENSATE') checkCharges(rows);
    rows.slice(0, -1).forEach((row) => {
      assert.equal(row.answer, 'unknown', 'what is certain is tried again');
      assert.ok(!row.isLast, 'a call after the last one');
      if (!isIdempotent(service)) assert.ok(row.isUnsent, 'a service that is not idempotent is called again');
    });
    const last = rows.at(-1);
    const isGivenUp =
      after.stuck?.op === op && after.stuck.step === step
        ? true
        : op === 'EXECUTE' &&
          after.status === 'COMPENSATING' &&
          after.abort === null &&
          !after.isDeadlineOver;
    const isCalled = rowsOf(log, step, op).at(-1) === last;
    const isRepeatable = isCalled && last?.answer === 'unknown' && !last.isLast;
    if (last?.isLast === true)
      assert.ok(!isIdempotent(service) || last.error?.endsWith(', after a 202'), 'a call is the last one');
    if (isGivenUp && isRepeatable && after.stuck?.reason !== NO_UNDO)
      assert.ok(spent >= budget, `given up when ${spent} of ${budget} is spent: ${op}`);
  }
}

/** The attempt that uses the budget up may take as long as it takes: the longest is one that works for an hour. */
const LONGEST_MS = 3_600_000;

/** No time is charged that has not passed. */
function checkCharges(rows: readonly Attempt[]): void {
  rows.slice(1).forEach((row, index) => {
    const before = rows[index] as Attempt;
    const passedMs = row.startedAt - before.startedAt;
    assert.ok(
      passedMs >= before.spentMs - 1,
      `${before.spentMs} ms are charged, and ${passedMs} ms have passed`,
    );
  });
}

const NO_UNDO = 'it may have happened, and it has no undo';

/** A saga that stands still ends, or waits for a person, or for a time, or for an answer. */
function checkStop({ after }: Change): void {
  const isInFlight = after.log.some(({ status }) => status === null);
  const isTerminal = transitions[after.status].length === 0;
  const ways = [isTerminal, after.stuck !== null, after.wakeAt !== null];
  if (!isInFlight) assert.equal(ways.filter(Boolean).length, 1, JSON.stringify(ways));
  if (after.stuck !== null) assert.ok(after.status === 'RUNNING' || after.status === 'COMPENSATING');
  assert.equal(after.compensation === 'stuck', after.stuck?.op === 'COMPENSATE');
  if (isTerminal) assert.ok(!isInFlight);
  const isAbortable = (after.status === 'STARTED' || after.status === 'RUNNING') && !after.pivotOpened;
  if (!isAbortable) return;
  const isAborted = after.abort !== null || after.isDeadlineOver;
  assert.ok(!isAborted || after.polling === null, 'a polled action outlives an abort');
  if (after.wakeAt !== null && after.deadlineAt !== null)
    assert.ok(after.wakeAt <= after.deadlineAt, 'it sleeps through its deadline');
}

function checkEnd({ workflow, after }: Change): void {
  const { status, log, abort, compensation } = after;
  if (status === 'COMPLETED') {
    workflow.steps.forEach((_, step) => assert.ok(isPassed(log, step)));
    assert.equal(abort, null, 'COMPLETED although it was aborted');
    assert.ok(!log.some(({ op }) => op === 'COMPENSATE'));
  }
  if (status !== 'FAILED' && status !== 'CANCELLED') return;
  assert.equal(status === 'CANCELLED', abort?.kind === 'cancel');
  workflow.steps.forEach((_, step) =>
    assert.ok(
      !mayHaveHappened(log, step) || isUndone(log, step),
      `${status} although step ${step} is not undone`,
    ),
  );
  assert.ok(after.errorMessage !== null);
  const byHand = log.some(
    ({ op, by, status }) =>
      op === 'COMPENSATE' && by !== null && (status === 'SUCCESS' || status === 'SKIPPED'),
  );
  const isAny = log.some(({ op }) => op === 'COMPENSATE');
  assert.equal(compensation, byHand ? 'resolved' : isAny ? 'done' : 'none');
}
