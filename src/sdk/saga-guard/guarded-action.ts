import type { ClientBase, Pool } from 'pg';
import type { Sql } from '../../platform/postgres/sql.ts';
import { decideAction, type ActionDecision } from './decide-guarded-call.ts';
import { readGuardedCall, type GuardedCall, type GuardRequest, type SagaCall } from './guard-call.ts';
import { replyOf, replyWith, type GuardReply } from './guard-reply.ts';
import { insertRow, selectRow, settleRow, storeAnswer, takeOver, type StepKey } from './guard-table.ts';
import { inGuardTransaction, type Ending, type GuardTransaction } from './guard-transaction.ts';
import { runHandler } from './run-handler.ts';

/** What every guarded call needs. */
export type GuardDeps = Readonly<{
  pool: Pool;
  table: Sql;
  retentionMs: number;
  onError: (error: unknown, call: SagaCall) => void;
}>;

/** Takes a call as it arrived; whatever happens, the reply says what the saga may rely on. */
export type Guarded = (request: GuardRequest) => Promise<GuardReply>;

/**
 * Does the action in this transaction, in which its row must not have been there before or has become its own.
 * What it returns is told again whenever the action is asked for again. It may run several times, of which one at
 * most commits.
 */
export type ActionHandler<Body = unknown, Answer = unknown> = (
  tx: ClientBase,
  call: SagaCall<Body>,
) => Answer | Promise<Answer>;

export function guardAction(deps: GuardDeps, handler: ActionHandler): Guarded {
  return guarded(deps, 'action', async (call) => {
    const ended = await inGuardTransaction(deps.pool, async (tx): Promise<Ending<GuardReply>> => {
      const begun = await beginAction(deps, tx, call, null);
      if (begun.do === 'again') return { end: 'again' };
      if (begun.do !== 'begin') return { end: 'rollback', value: replyToAction(begun) };
      return { end: 'commit', value: await act(deps, tx, call, () => handler(tx.client, callFor(call))) };
    });
    return ended.end === 'busy' ? replyOf('working') : ended.value;
  });
}

/** The row is done in this transaction; the handler makes it true. */
export async function act(
  { table }: GuardDeps,
  tx: GuardTransaction,
  step: StepKey,
  handler: () => unknown,
): Promise<GuardReply> {
  const { outcome, answer } = await runHandler(tx, handler);
  const isStored =
    outcome === 'done'
      ? await storeAnswer(tx.ask, table, step, answer)
      : await settleRow(tx.ask, table, step, { from: 'done', to: 'refused', answer });
  if (!isStored) throw new Error('the handler has changed the row of the saga guard');
  return replyWith(answer);
}

export type Begun =
  | Exclude<ActionDecision, Readonly<{ do: 'begin' }> | Readonly<{ do: 'take_over' }>>
  | Readonly<{ do: 'begin'; run: number }>
  | Readonly<{ do: 'again' }>;

/**
 * Makes the row this call's own, or finds out what else is to be said. `leaseMs` is that of a long action, without an
 * end for one that nobody holds.
 */
export async function beginAction(
  { table, retentionMs }: GuardDeps,
  { ask, moment }: GuardTransaction,
  call: GuardedCall,
  leaseMs: number | null,
): Promise<Begun> {
  const phase = leaseMs === null ? 'done' : 'working';
  const isNew = await insertRow(ask, table, call, { phase, digest: call.digest, leaseMs });
  const row = isNew ? null : await selectRow(ask, table, call, 'unlocked');
  if (!isNew && row === null) return { do: 'again' };
  const decision = decideAction({ ...(await moment({ ...call, retentionMs })), digest: call.digest }, row);
  if (decision.do === 'begin') return { do: 'begin', run: 1 };
  if (decision.do !== 'take_over') return decision;
  const isOurs = await takeOver(ask, table, call, { lostRun: decision.run, phase, leaseMs });
  return isOurs ? { do: 'begin', run: decision.run + 1 } : { do: 'again' };
}

export function replyToAction(
  decision: Exclude<Begun, Readonly<{ do: 'begin' }> | Readonly<{ do: 'again' }>>,
): GuardReply {
  switch (decision.do) {
    case 'replay':
      return replyWith(decision.answer);
    case 'wait':
      return replyOf('working');
    case 'too_late':
      return replyOf('too-late');
    case 'forgotten':
      return replyOf('forgotten');
    case 'mismatch':
      return replyOf('mismatch');
    case 'already_undone':
      return replyOf('already-compensated');
    case 'no_answer':
      return replyOf('failed', 'it was done by a handler that ended the transaction, so its answer is lost');
  }
}

/** The frame of every guarded call: reads it, runs it, and turns a fault into an answer that decides nothing. */
export function guarded(
  { onError }: GuardDeps,
  op: 'action' | 'compensate',
  run: (call: GuardedCall) => Promise<GuardReply>,
): Guarded {
  return async (request) => {
    const read = readGuardedCall(request, op);
    if (!read.ok) return replyOf('bad-request', read.flaw);
    try {
      return await run(read.call);
    } catch (error) {
      onError(error, callFor(read.call));
      return replyOf('failed');
    }
  };
}

export function callFor({ sagaId, step, attempt, startedAt, body }: GuardedCall): SagaCall {
  return { sagaId, step, attempt, startedAt, body };
}
