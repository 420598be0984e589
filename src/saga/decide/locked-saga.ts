import assert from 'node:assert/strict';
import { codeOf } from '../../kernel/errors.ts';
import { cleanText } from '../../kernel/text.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { notify } from '../../platform/work/wake.ts';
import type { Refusal } from '../domain/advance-by-operator.ts';
import { withKnown, type Operator, type SagaState, type Status } from '../domain/saga-state.ts';
import type { Context, Settlement } from '../domain/settlement.ts';
import type { Workflow } from '../domain/workflow/workflow.ts';
import {
  logColumns,
  logOrder,
  sagaChannel,
  sagaColumns,
  stateOf,
  type LogRow,
  type SagaRow,
} from '../saga-table.ts';
import { isDeadlineNew, writeSagas, type AddEvents } from '../write-sagas.ts';
import { adoptSaga, type Adoption } from './adopt-saga.ts';

export type DecideDeps = Readonly<{
  db: Database;
  serviceOf: Context['serviceOf'];
  /** Null if events are not published. */
  addEvents: AddEvents | null;
  /** Called after the transaction was committed. */
  onSettled?: (before: SagaBefore, after: Settlement) => void;
}>;

export type SagaBefore = Readonly<{ id: string; workflow: Workflow; state: SagaState }>;

export const lockTimeout = sql`SET LOCAL lock_timeout = '2s'`;
/** For bulk work, which skips locked sagas. */
export const shortLockTimeout = sql`SET LOCAL lock_timeout = '500ms'`;

/** Nothing is changed if another transaction keeps the saga locked. */
export async function unlessLocked<T>(
  db: Database,
  timeout: Sql,
  work: (tx: Queryable) => Promise<T>,
): Promise<T | Readonly<{ outcome: 'busy' }>> {
  try {
    return await db.transaction(async (tx) => {
      await tx.query(timeout);
      return work(tx);
    });
  } catch (error) {
    if (codeOf(error) === '55P03') return { outcome: 'busy' };
    throw error;
  }
}

const maxReasonBytes = 1000;

export function withCleanReason<Asked extends Readonly<{ by: Operator }>>(asked: Asked): Asked {
  const { actor, reason } = asked.by;
  return { ...asked, by: { actor, reason: cleanText(reason, maxReasonBytes) } };
}

export type FoundSaga = SagaRow & Readonly<{ definition: unknown; lease_epoch: bigint }>;

export async function lockSaga(tx: Queryable, sagaId: string): Promise<FoundSaga | null> {
  const [row] = await tx.query<FoundSaga>(sql`
    SELECT ${sagaColumns}, d.definition, t.lease_epoch
    FROM saga.saga_states t LEFT JOIN saga.workflow_definitions d ON d.hash = t.definition_hash
    WHERE t.id = ${sagaId}
    FOR UPDATE OF t`);
  return row ?? null;
}

export async function archivedStatus(tx: Queryable, sagaId: string): Promise<Status | null> {
  const [row] = await tx.query<{ status: Status }>(sql`
    SELECT status FROM saga.saga_states_archive WHERE id = ${sagaId}`);
  return row?.status ?? null;
}

export async function readLog(tx: Queryable, sagaId: string): Promise<readonly LogRow[]> {
  return tx.query<LogRow>(sql`
    SELECT ${logColumns} FROM saga.saga_step_logs l WHERE l.saga_id = ${sagaId}
    ORDER BY ${logOrder}`);
}

export type LockedSaga = Readonly<{
  found: FoundSaga;
  workflow: Workflow;
  /** Set if the saga was started without a definition. */
  adoption: Adoption | null;
  log: readonly LogRow[];
}>;

type AdvanceLocked = (state: SagaState, context: Context) => Settlement | Refusal;

export type Settled = Readonly<{ outcome: 'settled'; before: SagaBefore; after: Settlement }>;

/**
 * Advances a locked saga and writes the result, under a new epoch that fences off its current worker. The clock is read
 * after the lock was granted, because waiting for it takes time.
 */
export async function settleLocked(
  deps: DecideDeps,
  tx: Queryable,
  saga: LockedSaga,
  advance: AdvanceLocked,
): Promise<Settled | Refusal> {
  const { now, isOver } = await readClock(tx, saga.found.id);
  const settled =
    (await trySettle(deps, tx, saga, { advance, now, isOver })) ??
    // The deadline passed between reading the clock and writing. Nothing else can change while the saga is locked.
    (await trySettle(deps, tx, saga, { advance, now, isOver: true }));
  assert(settled !== null, 'a locked saga with a known deadline can be settled');
  return settled;
}

async function readClock(tx: Queryable, sagaId: string): Promise<Readonly<{ now: number; isOver: boolean }>> {
  const [row] = await tx.query<{ now_ms: number; is_over: boolean }>(sql`
    SELECT date_part('epoch', clock_timestamp()) * 1000 AS now_ms,
           t.deadline_over OR (${isDeadlineNew}) IS TRUE AS is_over
    FROM saga.saga_states t WHERE t.id = ${sagaId}`);
  assert(row !== undefined, 'a locked saga exists');
  return { now: Math.round(row.now_ms), isOver: row.is_over };
}

/** Null if the deadline is over and was not known to be. */
async function trySettle(
  { db, serviceOf, addEvents }: DecideDeps,
  tx: Queryable,
  { found, workflow, adoption, log }: LockedSaga,
  { advance, now, isOver }: Readonly<{ advance: AdvanceLocked; now: number; isOver: boolean }>,
): Promise<Settled | Refusal | null> {
  const { id } = found;
  const read = stateOf(found, log);
  const known = { abort: read.abort, isDeadlineOver: isOver };
  const before = { id, workflow, state: withKnown(read, known) };
  const after = advance(before.state, { now, random: Math.random, serviceOf });
  if (after.outcome === 'refused') return after;
  const { state, changed, added, events } = after;
  if (adoption !== null) await adoptSaga(tx, id, adoption);
  const lease = { owner: operatorOwner, epoch: await takeOver(tx, id), endsAtMs: 0 };
  const inTransaction: Database = { ...db, ...tx, transaction: (work) => work(tx) };
  const written = await writeSagas(
    inTransaction,
    [
      {
        saga: { id, lease, workflow, correlationId: found.correlation_id },
        known,
        state,
        changed,
        added,
        events,
        keepsLease: false,
      },
    ],
    addEvents,
  );
  if (!written.has(id)) return null;
  if (state.wakeAt !== null) await notify(tx, sagaChannel);
  return { outcome: 'settled', before, after };
}

/** Never visible to others: the write that follows in the same transaction releases the lease. */
const operatorOwner = 'operator';

async function takeOver(tx: Queryable, sagaId: string): Promise<bigint> {
  const [row] = await tx.query<{ lease_epoch: bigint }>(sql`
    UPDATE saga.saga_states
    SET lease_owner = ${operatorOwner}, lease_until = clock_timestamp(), lease_epoch = nextval('platform.lease_epochs')
    WHERE id = ${sagaId}
    RETURNING lease_epoch`);
  assert(row !== undefined, 'a locked saga exists');
  return row.lease_epoch;
}

export function hasEnded(status: Status): string {
  return `the saga has ended: status=${status}`;
}

export function refuse(kind: Refusal['kind'], message: string): Refusal {
  return { outcome: 'refused', kind, message };
}
