import { sql } from '../../platform/postgres/sql.ts';
import type { PostgresClient } from '../postgres-pool.ts';
import type { Phase } from './decide-guarded-call.ts';
import { replyOf, replyWith, type GuardReply } from './guard-reply.ts';
import { selectRow, settleRow, type StepKey } from './guard-table.ts';
import { inGuardTransaction, type Ending, type GuardTransaction } from './guard-transaction.ts';
import {
  act,
  beginAction,
  callFor,
  guarded,
  replyToAction,
  type ActionHandler,
  type Guarded,
  type GuardDeps,
} from './guarded-action.ts';
import { runHandler } from './run-handler.ts';

/**
 * An action that is completed later: by another process, a job or a person. One transaction begins it: it inserts the
 * row as `working`, and may enqueue a job or store a task. After that no process works on it, so its lease never
 * expires, and an undo makes it void at once; `complete` then returns `undone`.
 *
 * `begin` must not have effects of its own, only record the request: an undo before `complete` calls no handler, and
 * what `begin` has written stays. The caller of `complete` cleans it up when it gets `undone`.
 */
export function guardDeferredAction(deps: GuardDeps, begin: ActionHandler): Guarded {
  return guarded(deps, 'action', async (call) => {
    const ended = await inGuardTransaction(deps.pool, async (tx): Promise<Ending<GuardReply>> => {
      const begun = await beginAction(deps, tx, call, Number.POSITIVE_INFINITY);
      if (begun.do === 'again') return { end: 'again' };
      if (begun.do !== 'begin') return { end: 'rollback', value: replyToAction(begun) };
      const { outcome, answer } = await runHandler(tx, () => begin(tx.client, callFor(call)));
      if (outcome === 'done') return { end: 'commit', value: replyOf('working') };
      if (!(await settleRow(tx.ask, deps.table, call, { from: 'working', to: 'refused', answer })))
        throw new Error('the handler has changed the row of the saga guard');
      return { end: 'commit', value: replyWith(answer) };
    });
    return ended.end === 'busy' ? replyOf('working') : ended.value;
  });
}

/**
 * The outcome of the action, now or earlier. `undone`: its saga was undone, and the effect was not called. `unknown`: no
 * such action was begun here, or its row has expired.
 */
export type CompletedAction = 'done' | 'refused' | 'undone' | 'unknown';

const MAX_TRIES = 15;

/**
 * Completes a deferred action: the effect and the change from working to done are one transaction. It may be called
 * again, by any process: only one effect commits. If the effect throws, everything is rolled back, and the action stays
 * `working`.
 */
export async function completeDeferredAction(
  deps: GuardDeps,
  step: StepKey,
  effect: (tx: PostgresClient) => unknown,
): Promise<CompletedAction> {
  // Others lock the row only to read or to complete it.
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const ended = await inGuardTransaction(deps.pool, (tx) => complete(deps, tx, step, effect));
    if (ended.end === 'ended') return ended.value;
  }
  throw new Error('the row of this step is locked by another transaction');
}

async function complete(
  deps: GuardDeps,
  tx: GuardTransaction,
  step: StepKey,
  effect: (tx: PostgresClient) => unknown,
): Promise<Ending<CompletedAction>> {
  const rows = await tx.ask(sql`
    UPDATE ${deps.table} SET phase = 'done', lease_until = NULL, settled_at = clock_timestamp()
    WHERE saga_id = ${step.sagaId} AND step = ${step.step} AND phase = 'working' AND lease_until = 'infinity'
    RETURNING phase`);
  if (rows.length === 0) {
    const row = await selectRow(tx.ask, deps.table, step, 'unlocked');
    return { end: 'rollback', value: endOf(row?.phase) };
  }
  await act(deps, tx, step, () => effect(tx.client));
  const row = await selectRow(tx.ask, deps.table, step, 'unlocked');
  return { end: 'commit', value: endOf(row?.phase) };
}

function endOf(phase: Phase | undefined): CompletedAction {
  switch (phase) {
    case 'done':
    case 'refused':
      return phase;
    case 'undone':
    case 'void':
      return 'undone';
    case 'working':
    case undefined:
      return 'unknown';
  }
}
