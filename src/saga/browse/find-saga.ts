import { MAX_JSON_BYTES } from '../../kernel/json-extent.ts';
import { createItemCover } from '../../kernel/protect/item-cover.ts';
import type { Masks } from '../../kernel/protect/protection.ts';
import { formatInstant } from '../../kernel/timestamp.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { attemptHeaders } from '../domain/attempt-headers.ts';
import type { AnswerClass, LogStatus, Op } from '../domain/saga-state.ts';
import { presentSteps, readSteps, type SagaStep } from './saga-steps.ts';
import {
  presentSaga,
  rawOrNull,
  sagaOf,
  viewColumns,
  wholePayload,
  type Json,
  type Saga,
  type ViewRow,
} from './saga-view.ts';

/** One attempt at a step. */
export type LoggedStep = Readonly<{
  id: string;
  stepIndex: number;
  stepName: string;
  action: Op;
  /** Null while the attempt is open. */
  status: LogStatus | null;
  /** Null while it is open, and if it was skipped. */
  answer: AnswerClass | null;
  /** No byte of the request was sent. */
  isUnsent: boolean;
  requestText: string | null;
  responseText: string | null;
  /** The payloads of all steps together are too large to show. */
  arePayloadsOmitted: boolean;
  errorMessage: string | null;
  startedAt: Date;
  completedAt: Date | null;
  updatedAt: Date;
  attempt: number;
  actor: string | null;
  reason: string | null;
  /** Of the error. */
  fingerprint: string | null;
}>;

/** Read in one snapshot. */
export type SagaWithSteps = Readonly<{
  saga: Saga;
  log: readonly LoggedStep[];
  /** Of its definition; undefined if it has none. */
  steps: readonly SagaStep[] | undefined;
}>;

/** Payloads of steps are shown up to this size in total, starting with the first step. */
const maxStepBytes = 8 * 1024 * 1024;

/** One saga with all attempts at its steps, archived or not. */
export function findSaga(db: Database, sagaId: string): Promise<SagaWithSteps | null> {
  return db.transaction(async (tx) => {
    // One snapshot, because the archiver may move the saga between the two statements.
    await tx.query(sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY`);
    return readSaga(tx, sagaId);
  });
}

async function readSaga(tx: Queryable, sagaId: string): Promise<SagaWithSteps | null> {
  const [row] = await tx.query<ViewRow>(sql`
    SELECT ${viewColumns}, ${wholePayload} FROM saga.saga_states t WHERE t.id = ${sagaId}
    UNION ALL
    SELECT ${viewColumns}, ${wholePayload} FROM saga.saga_states_archive t WHERE t.id = ${sagaId}`);
  if (row === undefined) return null;
  const saga = sagaOf(row);
  const steps = await readSteps(tx, [saga]);
  return { saga, log: await selectLog(tx, sagaId), steps: steps.get(sagaId) };
}

/** In a transaction that also writes: every statement sees what was committed before it. */
export async function findSagaIn(tx: Queryable, sagaId: string): Promise<SagaWithSteps | null> {
  return readSaga(tx, sagaId);
}

const stepColumns: Sql = sql`
  l.id, l.step_index, l.step_name, l.action, l.status, l.request_payload, l.response_payload, l.error_message,
  l.started_at, l.completed_at, l.updated_at, l.attempt, l.answer, l.is_unsent, l.actor, l.reason, l.fingerprint`;

const stepOrder: Sql = sql`s.step_index, s.started_at, s.action DESC, s.attempt`;

function stepsOf(sagaId: string): Sql {
  return sql`(
    SELECT ${stepColumns} FROM saga.saga_step_logs l WHERE l.saga_id = ${sagaId}
    UNION ALL
    SELECT ${stepColumns} FROM saga.saga_step_logs_archive l WHERE l.saga_id = ${sagaId}) AS s`;
}

const stepBytes: Sql = sql`(
  COALESCE(platform.json_bytes(s.request_payload), 0) + COALESCE(platform.json_bytes(s.response_payload), 0))`;

async function selectLog(tx: Queryable, sagaId: string): Promise<readonly LoggedStep[]> {
  return tx.query<LoggedStep>(sql`
    SELECT s.id, s.step_index AS "stepIndex", s.step_name AS "stepName", s.action, s.status, s.answer,
           s.is_unsent AS "isUnsent",
           CASE WHEN s.is_shown THEN s.request_payload::text END AS "requestText",
           CASE WHEN s.is_shown THEN s.response_payload::text END AS "responseText",
           NOT s.is_shown AS "arePayloadsOmitted", s.error_message AS "errorMessage", s.started_at AS "startedAt",
           s.completed_at AS "completedAt", s.updated_at AS "updatedAt", s.attempt, s.actor, s.reason,
           s.fingerprint
    FROM (
      SELECT s.*, sum(${stepBytes}) OVER (ORDER BY ${stepOrder} ROWS UNBOUNDED PRECEDING) <= ${maxStepBytes}
               AS is_shown
      FROM ${stepsOf(sagaId)}) AS s
    ORDER BY ${stepOrder}`);
}

/** The approximate size of the response that shows the saga. */
export async function sagaBytes(db: Queryable, sagaId: string): Promise<number> {
  const payload = sql`LEAST(COALESCE(platform.json_bytes(t.payload), 0), ${MAX_JSON_BYTES}::bigint)`;
  const [row] = await db.query<{ bytes: bigint }>(sql`
    SELECT LEAST((SELECT COALESCE(sum(${stepBytes}), 0) FROM ${stepsOf(sagaId)}), ${maxStepBytes})::bigint
           + COALESCE((SELECT ${payload} FROM saga.saga_states t WHERE t.id = ${sagaId}), 0)
           + COALESCE((SELECT ${payload} FROM saga.saga_states_archive t WHERE t.id = ${sagaId}), 0) AS bytes`);
  return Number(row?.bytes ?? 0n);
}

export function presentWithSteps({ saga, log, steps }: SagaWithSteps, masks: Masks): Json {
  return {
    saga: { ...presentSaga(saga, masks), steps: presentSteps(steps) },
    step_logs: log.map((step) => presentStep(saga.sagaId, step, masks)),
  };
}

function presentStep(sagaId: string, step: LoggedStep, masks: Masks): Json {
  const cover = createItemCover(masks);
  return {
    id: step.id,
    saga_id: sagaId,
    step_index: step.stepIndex,
    step_name: step.stepName,
    action: step.action,
    status: step.status,
    request_payload: rawOrNull(cover.json(step.requestText)),
    response_payload: rawOrNull(cover.json(step.responseText)),
    error_message: cover.text(step.errorMessage),
    started_at: formatInstant(step.startedAt),
    completed_at: formatInstant(step.completedAt),
    updated_at: formatInstant(step.updatedAt),
    attempt: step.attempt,
    answer: step.answer,
    headers: step.isUnsent
      ? null
      : attemptHeaders({ sagaId, stepName: step.stepName, op: step.action, attempt: step.attempt }),
    fingerprint: step.fingerprint,
    ...(step.arePayloadsOmitted ? { payloads_omitted: true } : {}),
    ...(step.actor === null ? {} : { actor: step.actor, reason: cover.text(step.reason) }),
    ...cover.mark(),
  };
}
