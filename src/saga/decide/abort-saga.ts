import assert from 'node:assert/strict';
import type { Act } from '../../kernel/audit/act.ts';
import { AppError } from '../../kernel/errors.ts';
import { recordAct } from '../../platform/audit/record-act.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { Logger } from '../../platform/telemetry/logger.ts';
import { notify } from '../../platform/work/wake.ts';
import { requestAbort, type AbortOutcome } from '../domain/request-abort.ts';
import type { Abort, Operator, Status } from '../domain/saga-state.ts';
import { busy, throwNotFound } from '../saga-errors.ts';
import { sagaChannel, stateOf } from '../saga-table.ts';
import { adoptSaga, findAdoption } from './adopt-saga.ts';
import {
  archivedStatus,
  hasEnded,
  lockSaga,
  lockTimeout,
  readLog,
  unlessLocked,
  withCleanReason,
  type FoundSaga,
} from './locked-saga.ts';

export type AbortRequest = Readonly<{ kind: Abort['kind']; by: Operator; act: Act }>;

/** With the status that the outcome is based on. */
export type AbortResult =
  | Readonly<{ outcome: 'not_found' }>
  /** Another transaction has locked it. */
  | Readonly<{ outcome: 'busy' }>
  | (Readonly<{ status: Status }> &
      (Readonly<{ outcome: 'stored' }> | Exclude<AbortOutcome, Readonly<{ outcome: 'stored' }>>));

export type AnsweredAbort = Readonly<{ status: Status; message: string }>;

const stored: Readonly<Record<Abort['kind'], string>> = {
  cancel: 'cancel requested: completed steps are undone after the current call has ended',
  compensate: 'compensation requested: completed steps are undone after the current call has ended',
};

/** Returns as soon as the request is stored; the engine does the rest. */
export async function abortSaga(
  { db, log }: Readonly<{ db: Database; log: Logger }>,
  sagaId: string,
  request: AbortRequest,
): Promise<AnsweredAbort> {
  const result = await storeAbort(db, sagaId, request);
  switch (result.outcome) {
    case 'not_found':
      return throwNotFound(`saga not found: saga_id=${sagaId}`);
    case 'busy':
      throw busy('another open transaction holds this saga');
    case 'refused':
      throw new AppError('SYS_SAGA_CONFLICT', 'conflict', result.message);
    case 'stored':
    case 'unchanged': {
      const { kind, by } = request;
      const { status } = result;
      const isStored = result.outcome === 'stored';
      log.info(
        { saga_id: sagaId, status, actor: by.actor, reason: by.reason, stored: isStored },
        kind === 'cancel' ? 'saga cancel requested' : 'saga compensation requested',
      );
      return {
        status,
        message: isStored ? stored[kind] : 'the saga is already being undone; nothing was changed',
      };
    }
  }
}

export async function storeAbort(db: Database, sagaId: string, asked: AbortRequest): Promise<AbortResult> {
  const request = withCleanReason(asked);
  return unlessLocked(db, lockTimeout, async (tx): Promise<AbortResult> => {
    const status = await updateAbort(tx, sagaId, request);
    return status === null ? explainOrAdopt(tx, sagaId, request) : { outcome: 'stored', status };
  });
}

/** Why the request could not be stored; a saga without a definition may first have to adopt one. */
async function explainOrAdopt(tx: Queryable, sagaId: string, request: AbortRequest): Promise<AbortResult> {
  const found = await lockSaga(tx, sagaId);
  if (found === null) {
    const ended = await archivedStatus(tx, sagaId);
    return ended === null
      ? { outcome: 'not_found' }
      : { outcome: 'refused', status: ended, message: hasEnded(ended) };
  }
  const { status } = found;
  const ruled = requestAbort(stateOf(found, []), { ...request, at: 0 });
  if (ruled.outcome !== 'stored') return { ...ruled, status };
  const flaw = await adoptForAbort(tx, found);
  if (flaw !== null) return { outcome: 'refused', status, message: flaw };
  // A saga that had a definition was committed after the first update looked for it. Now it is locked.
  const late = await updateAbort(tx, sagaId, request);
  assert(late !== null, 'the abort of a locked saga that may be aborted can be stored');
  return { outcome: 'stored', status: late };
}

/** Why a saga without a definition cannot be undone; null if it has one now. */
async function adoptForAbort(tx: Queryable, found: FoundSaga): Promise<string | null> {
  if (found.definition !== null) return null;
  const adoption = await findAdoption(tx, found, await readLog(tx, found.id));
  if ('flaw' in adoption) return adoption.flaw;
  if (adoption.isPivotOpened) return 'the saga is beyond its pivot and can only go forward';
  await adoptSaga(tx, found.id, adoption);
  return null;
}

/**
 * The rule of request-abort.ts in one statement, which needs no lock beforehand. Status, lease and epoch do not change.
 * The worker of a leased saga finds the request when it settles, and nobody may claim the saga meanwhile: only an
 * unleased one is woken. If the saga needed attention, its failed rounds are reset.
 */
async function updateAbort(
  tx: Queryable,
  sagaId: string,
  { kind, by: { actor, reason }, act }: AbortRequest,
): Promise<Status | null> {
  const [row] = await tx.query<{ status: Status; workflow: string }>(sql`
    UPDATE saga.saga_states
    SET abort_requested = ${kind}, abort_actor = ${actor}, abort_reason = ${reason}, abort_at = clock_timestamp(),
        wake_at = CASE WHEN lease_owner IS NULL THEN now() END,
        waiting_for = NULL, waiting_since = NULL, needs_attention = false, stuck_step = NULL, stuck_op = NULL, stuck_reason = NULL,
        fingerprint = NULL,
        failed_rounds = CASE WHEN needs_attention THEN 0 ELSE failed_rounds END, runs_alone = runs_alone AND NOT needs_attention
    WHERE id = ${sagaId} AND status IN ('STARTED', 'RUNNING') AND NOT pivot_opened AND abort_requested IS NULL
      AND definition_hash IS NOT NULL
    RETURNING status, workflow_name AS workflow`);
  if (row === undefined) return null;
  await recordAct(tx, act, {
    resource: `saga/sagas/${sagaId}`,
    names: { workflows: [row.workflow] },
    detail: { event: kind, status: row.status },
  });
  await notify(tx, sagaChannel);
  return row.status;
}
