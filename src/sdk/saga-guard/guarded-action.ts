import type { Sql } from '../../platform/postgres/sql.ts';
import type { PostgresClient, PostgresPool } from '../postgres-pool.ts';
import { decideAction, type ActionDecision } from './decide-guarded-call.ts';
import { readGuardedCall, type GuardedCall, type GuardRequest, type SagaCall } from './guard-call.ts';
import { replyOf, replyWith, type GuardReply } from './guard-reply.ts';
import { insertRow, selectRow, settleRow, storeAnswer, takeOver, type StepKey } from './guard-table.ts';
import { inGuardTransaction, type Ending, type GuardTransaction } from './guard-transaction.ts';
import { runHandler } from './run-handler.ts';

/** Dependencies of every guarded call. */
export type GuardDeps = Readonly<{
  pool: PostgresPool;
  table: Sql;
  retentionMs: number;
  onError: (error: unknown, call: SagaCall) => void;
}>;

/** Handles an incoming call; the reply is always one that the saga can rely on. */
export type Guarded = (request: GuardRequest) => Promise<GuardReply>;

/**
 * Does the action in the transaction that inserts its row. What it returns is stored and repeated for repeated calls. It
 * may run several times, but commits at most once.
 */
export type ActionHandler<Body = unknown, Answer = unknown, Client = PostgresClient> = (
  tx: Client,
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

/** Inserts the row as done, then runs the handler in the same transaction. */
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
 * Inserts the row for this call, or finds out how to answer instead. `leaseMs` is for a long action, infinite for a
 * deferred one.
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

/** The frame of every guarded call: reads and runs it, and turns an exception into an answer that leaves it in doubt. */
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
