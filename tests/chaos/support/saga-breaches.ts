import { isDeepStrictEqual } from 'node:util';
import type { Database } from '../../../src/platform/postgres/database.ts';
import { sql } from '../../../src/platform/postgres/sql.ts';
import { fold } from '../../../src/saga/domain/fold.ts';
import { isTerminal, type Attempt, type Op, type SagaState } from '../../../src/saga/domain/saga-state.ts';
import { fromStored } from '../../../src/saga/domain/workflow/workflow-hash.ts';
import type { Step, Workflow } from '../../../src/saga/domain/workflow/workflow.ts';
import { logColumns, sagaColumns, stateOf, type LogRow, type SagaRow } from '../../../src/saga/saga-table.ts';
import type { StepEffect } from '../../support/participant/steps-book.ts';
import { readSagaHistory } from './saga-history.ts';
import {
  attemptsOf,
  check,
  isPassed,
  isUndone,
  mayHaveHappened,
  storyBreaches,
} from './saga-story-breaches.ts';

export type SagaAccount = Readonly<{
  /** Every saga that was begun; no other one may be there. */
  begun: readonly string[];
  /** What guarded participants have committed; of one step in its order. */
  effects: readonly StepEffect[];
  /** The services that have the saga guard. */
  guarded: readonly string[];
}>;

type Saga = Readonly<{
  id: string;
  workflow: Workflow;
  state: SagaState;
  isHeld: boolean;
  isTold: boolean;
  effects: readonly StepEffect[];
}>;

/**
 * What must hold after any fault, once everything is at rest, as far as it does not: every saga that was begun has
 * ended or waits for a person who was told; its log folds to its state, and its story is one that a saga may have; all
 * of it is done, or all of it undone; and at the participants nothing has happened twice or in the wrong order.
 */
export async function findSagaBreaches(db: Database, account: SagaAccount): Promise<readonly string[]> {
  const [sagas, history] = [await readSagas(db, account.effects), await readSagaHistory(db)];
  const ids = new Set(sagas.map(({ id }) => id));
  const begun = new Set(account.begun);
  return [
    ...account.begun.filter((id) => !ids.has(id)).map((id) => `${id} is lost`),
    ...sagas.filter(({ id }) => !begun.has(id)).map(({ id }) => `${id} was never begun`),
    ...sagas.flatMap((saga) => {
      const breaches = [
        ...restBreaches(saga),
        ...foldBreaches(saga),
        ...storyBreaches(saga.workflow, history.get(saga.id) ?? []),
        ...saga.workflow.steps.flatMap((step, index) => budgetBreaches(saga, step, index)),
        ...endBreaches(saga),
        ...saga.workflow.steps.flatMap((step, index) =>
          account.guarded.includes(step.service) ? effectBreaches(saga, step, index) : [],
        ),
      ];
      return breaches.map((breach) => `${saga.id} (${saga.state.status}): ${breach}`);
    }),
  ];
}

type StoredSaga = SagaRow & Readonly<{ definition: unknown; lease_owner: string | null; is_told: boolean }>;

async function readSagas(db: Database, effects: readonly StepEffect[]): Promise<readonly Saga[]> {
  const rows = await db.query<StoredSaga>(sql`
    SELECT ${sagaColumns}, t.lease_owner, d.definition,
           EXISTS (SELECT 1 FROM platform.notify_events e WHERE e.slice = 'saga' AND e.item_id = t.id::text) AS is_told
    FROM saga.saga_states t JOIN saga.workflow_definitions d ON d.hash = t.definition_hash ORDER BY t.created_at`);
  // As it must have been: actions in the order of the steps, undos in the reverse order.
  const logs = await db.query<LogRow>(sql`
    SELECT ${logColumns} FROM saga.saga_step_logs l
    ORDER BY l.action DESC, CASE l.action WHEN 'EXECUTE' THEN l.step_index ELSE -l.step_index END, l.attempt`);
  const logOf = Map.groupBy(logs, (row) => row.saga_id);
  const effectsOf = Map.groupBy(effects, ({ sagaId }) => sagaId);
  return rows.map((row) => ({
    id: row.id,
    workflow: fromStored(row.definition),
    state: stateOf(row, logOf.get(row.id) ?? []),
    isHeld: row.lease_owner !== null,
    isTold: row.is_told,
    effects: effectsOf.get(row.id) ?? [],
  }));
}

function restBreaches({ state, isHeld, isTold }: Saga): readonly string[] {
  const isAtRest = isTerminal(state.status) || state.stuck !== null;
  return [
    ...check(isAtRest, 'it has not come to its end'),
    ...check(!isAtRest || state.wakeAt === null, 'it is to be woken for nothing'),
    ...check(!isAtRest || !isHeld, 'somebody still holds it'),
    ...check(!isAtRest || state.log.every(({ status }) => status !== null), 'an attempt is open'),
    ...check(state.stuck === null || isTold, 'it waits for a person, and nobody was told'),
  ];
}

function foldBreaches({ workflow, state }: Saga): readonly string[] {
  const { status, currentStep, outputs, compensation, errorMessage, stuck, pivotOpened } = state;
  const stored = { status, currentStep, outputs, compensation, errorMessage, stuck, pivotOpened };
  const folded = fold(workflow, state, state.log);
  return check(
    isDeepStrictEqual(folded, stored),
    `its log folds to ${JSON.stringify(folded)}, and not to ${JSON.stringify(stored)}`,
  );
}

const undoForMs = 86_400_000;

/** The calls since a person last granted a budget. */
function callsOf(log: readonly Attempt[], step: number, op: Op): readonly Attempt[] {
  const isCall = ({ answer }: Attempt): boolean =>
    answer !== 'unserved' && answer !== 'unavailable' && answer !== 'not_done' && answer !== null;
  const rows = attemptsOf(log, step, op).filter(isCall);
  const isGrant = ({ by, answer }: Attempt): boolean => by !== null && answer !== 'done';
  return rows.slice(rows.findLastIndex(isGrant) + 1).filter(({ by }) => by === null);
}

function budgetBreaches({ workflow, state: { log } }: Saga, step: Step, index: number): readonly string[] {
  const pivot = workflow.steps.findIndex(({ isPivot }) => isPivot);
  const isForwardOnly = pivot >= 0 && (index > pivot || (index === pivot && mayHaveHappened(log, index)));
  // Probes of a service that is known to be down cost nothing; the last call may end done or refused.
  const actions = callsOf(log, index, 'EXECUTE').filter(({ spentMs }) => spentMs > 0).length;
  const most = step.retry.maxAttempts;
  const overtimed = (['EXECUTE', 'COMPENSATE'] as const).filter((op) => {
    const tried = callsOf(log, index, op).slice(0, -1);
    return tried.reduce((sum, { spentMs }) => sum + spentMs, 0) >= (step.undoForMs ?? undoForMs);
  });
  return [
    ...check(
      isForwardOnly || actions <= most,
      `${step.name} was called ${actions} times, and ${most} are allowed`,
    ),
    ...check(overtimed.length === 0, `${step.name} was tried for too long: ${overtimed.join()}`),
    ...(['EXECUTE', 'COMPENSATE'] as const).flatMap((op) =>
      check(
        callsOf(log, index, op).every((row, i, all) => i === all.length - 1 || row.answer === 'unknown'),
        `${step.name} was called again after a certain answer`,
      ),
    ),
  ];
}

function endBreaches({ workflow, state }: Saga): readonly string[] {
  const { status, log, abort, compensation } = state;
  if (status === 'COMPLETED')
    return [
      ...check(
        workflow.steps.every((_, step) => isPassed(log, step)),
        'not every step is done',
      ),
      ...check(abort === null, 'it was aborted'),
      ...check(!log.some(({ op }) => op === 'COMPENSATE'), 'something was undone'),
    ];
  if (status !== 'FAILED' && status !== 'CANCELLED') return [];
  return [
    ...workflow.steps.flatMap(({ name }, step) =>
      check(!mayHaveHappened(log, step) || isUndone(log, step), `${name} is not undone`),
    ),
    ...check((status === 'CANCELLED') === (abort?.kind === 'cancel'), `it was aborted by ${abort?.kind}`),
    ...check(compensation !== 'running' && compensation !== 'stuck', `its compensation is ${compensation}`),
    ...check(state.errorMessage !== null, 'nothing says why'),
  ];
}

/** At a guarded participant: what is committed there agrees with how the saga ended. */
function effectBreaches({ state, effects }: Saga, step: Step, index: number): readonly string[] {
  const { log, status } = state;
  const own = effects.filter(({ step: name }) => name === step.name);
  const actions = own.filter(({ op }) => op === 'action').length;
  const undos = own.filter(({ op }) => op === 'compensate').length;
  const isSaidDone = attemptsOf(log, index, 'EXECUTE').some(
    ({ status: end, by }) => end === 'SUCCESS' && by === null,
  );
  const isUndoSaidDone = attemptsOf(log, index, 'COMPENSATE').some(
    ({ status: end, by }) => end === 'SUCCESS' && by === null,
  );
  const isOver = status === 'FAILED' || status === 'CANCELLED';
  const say = (what: string): string => `${step.name} ${what}`;
  return [
    ...check(actions <= 1, say(`has happened ${actions} times`)),
    ...check(undos <= 1, say(`was undone ${undos} times`)),
    ...check(undos === 0 || own[0]?.op === 'action', say('was undone before it happened')),
    ...check(
      actions === 0 || mayHaveHappened(log, index) || state.stuck !== null,
      say('has happened unknown'),
    ),
    ...check(!isSaidDone || actions === 1, say('is said to be done and is not')),
    ...check(!isUndoSaidDone || actions === undos, say('is said to be undone and is not')),
    ...check(status !== 'COMPLETED' || undos === 0, say('was undone although the saga is complete')),
    ...check(
      !isOver || step.undo.kind !== 'call' || actions === undos || isUndoneByHand(log, index),
      say('has happened and is not undone'),
    ),
  ];
}

function isUndoneByHand(log: readonly Attempt[], step: number): boolean {
  return attemptsOf(log, step, 'COMPENSATE').some(({ by, status }) => by !== null && status !== 'FAILED');
}
