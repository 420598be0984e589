import type { Op, Status } from '../../../src/saga/domain/saga-state.ts';
import type { Workflow } from '../../../src/saga/domain/workflow/workflow.ts';
import type { LoggedAttempt, SagaDeed } from './saga-history.ts';

/** What has been passed through in one settle is one change of the row: nothing was there to be undone by a call. */
const transitions: Readonly<Record<Status, readonly Status[]>> = {
  STARTED: ['RUNNING', 'CANCELLED', 'FAILED'],
  RUNNING: ['COMPLETED', 'COMPENSATING', 'CANCELLED', 'FAILED'],
  COMPENSATING: ['FAILED', 'CANCELLED'],
  COMPLETED: [],
  FAILED: [],
  CANCELLED: [],
};

type Log = readonly LoggedAttempt[];
type Story = { readonly log: LoggedAttempt[]; status: Status; isAborted: boolean };

/** What must hold at every step of a saga's way, read off what was committed, one thing after the other. */
export function storyBreaches(workflow: Workflow, deeds: readonly SagaDeed[]): readonly string[] {
  const story: Story = { log: [], status: 'STARTED', isAborted: false };
  return deeds.flatMap((deed) => tell(workflow, story, deed));
}

function tell(workflow: Workflow, story: Story, deed: SagaDeed): readonly string[] {
  const { log } = story;
  switch (deed.what) {
    case 'status': {
      const breaches = transitions[story.status].includes(deed.to) ? [] : [`${story.status} -> ${deed.to}`];
      story.status = deed.to;
      return breaches;
    }
    case 'aborted':
      story.isAborted = true;
      return [];
    case 'epoch_fell':
      return ['it was written with an older epoch'];
    case 'deleted':
    case 'rewritten':
      return [`${nameOf(deed)} was ${deed.what} after its end`];
    case 'closed': {
      const index = log.findLastIndex((row) => isSame(row, deed));
      if (index < 0) return [`${nameOf(deed)} was closed and never opened`];
      log[index] = deed;
      return [];
    }
    case 'opened':
    case 'written': {
      const isCall = deed.what === 'opened';
      const breaches = [
        ...check(
          !isCall || log.every(({ status }) => status !== null),
          `${nameOf(deed)} begins while another runs`,
        ),
        ...check(
          attemptsOf(log, deed.step, deed.op).length === deed.attempt - 1,
          `${nameOf(deed)} leaves out a number`,
        ),
        ...(deed.isByHand || deed.answer === 'unserved'
          ? []
          : deed.op === 'EXECUTE'
            ? actionBreaches(story, deed)
            : undoBreaches(workflow, log, deed)),
      ];
      log.push(deed);
      return breaches;
    }
  }
}

function actionBreaches({ log, isAborted, status }: Story, deed: LoggedAttempt): readonly string[] {
  const before = Array.from({ length: deed.step }, (_, step) => step);
  return [
    ...check(
      before.every((step) => isPassed(log, step)),
      `${nameOf(deed)} begins before the steps before it are done`,
    ),
    ...check(!log.some(({ op }) => op === 'COMPENSATE'), `${nameOf(deed)} begins after the first undo`),
    ...check(!isAborted, `${nameOf(deed)} begins after an abort`),
    ...check(status === 'STARTED' || status === 'RUNNING', `${nameOf(deed)} begins in ${status}`),
  ];
}

function undoBreaches(workflow: Workflow, log: Log, deed: LoggedAttempt): readonly string[] {
  const { step } = deed;
  const pivot = workflow.steps.findIndex(({ isPivot }) => isPivot);
  const kind = workflow.steps[step]?.undo.kind;
  const isRightlySkipped = kind === 'none' || (kind === 'absent' && isDone(log, step));
  return [
    ...check(mayHaveHappened(log, step), `${nameOf(deed)} has no cause`),
    ...check(!isUndone(log, step), `${nameOf(deed)} was done before`),
    ...check(
      workflow.steps.every(
        (_, later) => later <= step || !mayHaveHappened(log, later) || isUndone(log, later),
      ),
      `${nameOf(deed)} begins before the undo of a later step`,
    ),
    ...check(
      pivot < 0 || !(isPassed(log, pivot) || mayHaveHappened(log, pivot)),
      `${nameOf(deed)} is beyond the pivot`,
    ),
    ...check(
      deed.status === 'SKIPPED' ? isRightlySkipped : kind === 'call',
      `${nameOf(deed)} is ${deed.status === 'SKIPPED' ? 'skipped' : 'called'} without a reason`,
    ),
  ];
}

export function check(holds: boolean, otherwise: string): readonly string[] {
  return holds ? [] : [otherwise];
}

function isSame(a: LoggedAttempt, b: LoggedAttempt): boolean {
  return a.step === b.step && a.op === b.op && a.attempt === b.attempt;
}

function nameOf({ step, op, attempt }: LoggedAttempt): string {
  return `${op} of step ${step}, attempt ${attempt},`;
}

type Row = Readonly<Pick<LoggedAttempt, 'step' | 'op' | 'status' | 'answer' | 'isUnsent'>>;

export function attemptsOf<Kind extends Row>(log: readonly Kind[], step: number, op: Op): readonly Kind[] {
  return log.filter((row) => row.step === step && row.op === op);
}

export function isDone(log: readonly Row[], step: number): boolean {
  return attemptsOf(log, step, 'EXECUTE').some(({ status }) => status === 'SUCCESS');
}

export function isPassed(log: readonly Row[], step: number): boolean {
  return isDone(log, step) || attemptsOf(log, step, 'EXECUTE').some(({ status }) => status === 'SKIPPED');
}

export function isUndone(log: readonly Row[], step: number): boolean {
  return attemptsOf(log, step, 'COMPENSATE').some(
    ({ status }) => status === 'SUCCESS' || status === 'SKIPPED',
  );
}

/** It was sent, or may have been, and neither was every attempt refused nor does a person know better. */
export function mayHaveHappened(log: readonly Row[], step: number): boolean {
  const rows = attemptsOf(log, step, 'EXECUTE');
  if (rows.some(({ status }) => status === 'SUCCESS')) return true;
  if (rows.some(({ answer }) => answer === 'not_done')) return false;
  return rows.some(({ answer, status, isUnsent }) => (status === null || answer === 'unknown') && !isUnsent);
}
