import type { ClientBase } from 'pg';
import { sql } from '../../platform/postgres/sql.ts';
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
 * An action that somebody else ends: another process, a job, a person. Its beginning is one transaction, in which a
 * job can be enqueued or a task be written down, with the row that says `working`. Nobody holds it from then on, so its
 * lease never ends, and an undo makes it void at once: whoever wants to complete it later is told so.
 *
 * Nothing that counts may be written before `complete`. An undo finds an action that is not done, so no handler is
 * called, and what `begin` has written stays: it may only note what was asked for. Whoever is told `undone` clears it.
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
 * What has become of the action, now or before. `undone`: its saga no longer wants it, and the effect was not called.
 * `unknown`: no such action was begun here, or it is forgotten.
 */
export type CompletedAction = 'done' | 'refused' | 'undone' | 'unknown';

const MAX_TRIES = 15;

/**
 * Ends a deferred action: the effect and the step from working to done are one transaction. It may be called again, by
 * anybody: the effect of one of them commits. If the effect throws, nothing has happened, and the action still waits.
 */
export async function completeDeferredAction(
  deps: GuardDeps,
  step: StepKey,
  effect: (tx: ClientBase) => unknown,
): Promise<CompletedAction> {
  // Whoever else holds the row only looks at it, or completes it too.
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const ended = await inGuardTransaction(deps.pool, (tx) => complete(deps, tx, step, effect));
    if (ended.end === 'ended') return ended.value;
  }
  throw new Error('somebody else holds the row of this step');
}

async function complete(
  deps: GuardDeps,
  tx: GuardTransaction,
  step: StepKey,
  effect: (tx: ClientBase) => unknown,
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
