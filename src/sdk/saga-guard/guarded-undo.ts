import type { PostgresClient } from '../postgres-pool.ts';
import { decideUndo, type StoredAnswer } from './decide-guarded-call.ts';
import type { GuardedCall, SagaCall } from './guard-call.ts';
import { emptySuccess, replyOf, replyWith, type GuardReply } from './guard-reply.ts';
import { insertRow, requestUndo, selectRow, settleRow } from './guard-table.ts';
import { inGuardTransaction, type Ending, type GuardTransaction } from './guard-transaction.ts';
import { callFor, guarded, type Guarded, type GuardDeps } from './guarded-action.ts';
import { runHandler } from './run-handler.ts';

/** `answer` is the answer of the action, also if the saga never received it. */
export type UndoCall<Body = unknown, Answer = unknown> = SagaCall<Body> & Readonly<{ answer: Answer }>;

/** Undoes, in this transaction, an action that was done and not yet undone. */
export type UndoHandler<Body = unknown, Answer = unknown, Client = PostgresClient> = (
  tx: Client,
  call: UndoCall<Body, Answer>,
) => unknown;

/** A refused undo is not stored: the saga needs attention, and an operator may retry it later. */
export function guardUndo(deps: GuardDeps, handler: UndoHandler): Guarded {
  return guarded(deps, 'compensate', async (call) => {
    const ended = await inGuardTransaction(deps.pool, (tx) => runUndo(deps, tx, call, handler));
    return ended.end === 'busy' ? replyOf('working') : ended.value;
  });
}

async function runUndo(
  { table, retentionMs }: GuardDeps,
  tx: GuardTransaction,
  call: GuardedCall,
  handler: UndoHandler,
): Promise<Ending<GuardReply>> {
  const { ask } = tx;
  const isNew = await insertRow(ask, table, call, { phase: 'void', digest: null, leaseMs: null });
  const row = isNew ? null : await selectRow(ask, table, call, 'locked');
  if (!isNew && row === null) return { end: 'again' };
  const decision = decideUndo(await tx.moment({ ...call, retentionMs }), row);
  switch (decision.do) {
    case 'undo': {
      const told = { ...callFor(call), answer: valueOf(decision.answer) };
      const { outcome, answer } = await runHandler(tx, () => handler(tx.client, told));
      if (outcome === 'refused') return { end: 'rollback', value: replyWith(answer) };
      if (!(await settleRow(ask, table, call, { from: 'done', to: 'undone', answer })))
        throw new Error('the handler has changed the row of the saga guard');
      return { end: 'commit', value: replyWith(answer) };
    }
    case 'make_void':
      await settleRow(ask, table, call, { from: 'working', to: 'void', answer: null });
      return { end: 'commit', value: replyWith(emptySuccess) };
    case 'nothing_to_undo':
      return { end: 'commit', value: replyWith(emptySuccess) };
    case 'request_undo':
      await requestUndo(ask, table, call);
      return { end: 'commit', value: replyOf('working') };
    case 'replay':
      return { end: 'rollback', value: replyWith(decision.answer) };
    case 'wait':
      return { end: 'rollback', value: replyOf('working') };
    case 'too_late':
      return { end: 'rollback', value: replyOf('too-late') };
    case 'forgotten':
      return { end: 'rollback', value: replyOf('forgotten') };
  }
}

/** Null for an empty answer. */
function valueOf(answer: StoredAnswer | null): unknown {
  return answer === null || answer.body === null ? null : (JSON.parse(answer.body) as unknown);
}
