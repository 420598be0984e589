import { MAX_JSON_BYTES } from '../../kernel/json-extent.ts';
import { createItemCover } from '../../kernel/protect/item-cover.ts';
import type { Masks } from '../../kernel/protect/protection.ts';
import { formatInstant } from '../../kernel/timestamp.ts';
import { rawJson, type RawJson } from '../../platform/http/raw-json.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { readTraceContext } from '../../platform/telemetry/trace-context.ts';
import type { Abort, Compensation, Op, Status } from '../domain/saga-state.ts';
import { abortOf, type AbortRow } from '../saga-table.ts';

/** A saga as people read it: its columns, its type, its JSON. */
export type Saga = Readonly<{
  sagaId: string;
  workflowName: string;
  currentStep: number;
  status: Status;
  /** As PostgreSQL prints it; null if there is none, or if it is too large to show. */
  payloadText: string | null;
  isPayloadOmitted: boolean;
  correlationId: string | null;
  initiatedBy: string | null;
  /** Null without authentication, and if it was started in SQL or by the client library. */
  createdBy: string | null;
  errorMessage: string | null;
  /** Of the failure that it is stuck at or undone for. */
  fingerprint: string | null;
  createdAt: Date;
  /** With microseconds, for cursors. */
  createdAtExact: string;
  updatedAt: Date;
  compensation: Compensation;
  needsAttention: boolean;
  /** Where it needs attention. */
  stuck: Readonly<{ step: number; stepName: string | null; op: Op; reason: string }> | null;
  /** The service with an open circuit that its next call waits for. */
  waitingFor: Readonly<{ service: string; since: Date }> | null;
  deadlineAt: Date | null;
  /** Null if the predecessor started it. */
  definitionHash: string | null;
  /** Null while a call is in flight, at the end, and while it needs attention. */
  wakeAt: Date | null;
  pivotOpened: boolean;
  abort: Abort | null;
  traceId: string | null;
}>;

/** Of the row `t`. */
export const viewColumns: Sql = sql`
  t.id, t.workflow_name, t.current_step, t.status, t.correlation_id, t.initiated_by, t.created_by, t.error_message, t.fingerprint, t.created_at,
  COALESCE(
    to_char(t.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), t.created_at::text) AS created_at_exact, t.updated_at,
  t.compensation, t.needs_attention, t.stuck_step, t.stuck_op, t.stuck_reason, t.waiting_for, t.waiting_since, t.deadline_at,
  t.definition_hash, t.wake_at, t.pivot_opened, t.trace, t.abort_requested, t.abort_actor, t.abort_reason, t.abort_at,
  (SELECT d.definition -> 'steps' -> t.stuck_step ->> 'name' FROM saga.workflow_definitions d
   WHERE t.stuck_step IS NOT NULL AND d.hash = COALESCE(
     t.definition_hash,
     -- Without a definition of its own it would continue with the current one.
     (SELECT w.current_hash FROM saga.workflows w WHERE w.name = t.workflow_name))) AS stuck_step_name`;

/**
 * Measures the payload as it is shown: the column may be compressed, and PostgreSQL prints numbers without exponents.
 * Uncompressed JSONB takes up to six times its text, so a larger value need not be printed to be measured.
 */
function payloadUpTo(maxBytes: number): Sql {
  return sql`
    CASE WHEN pg_column_size(t.payload || '{}') <= ${6 * maxBytes}
              AND platform.json_bytes(t.payload) <= ${maxBytes} THEN t.payload::text END AS payload_text,
    t.payload IS NOT NULL AS has_payload`;
}

/** A page of larger payloads could grow to a hundred megabytes. */
const maxListedBytes = 16_384;

/** Larger payloads were stored before there was a limit. */
export const wholePayload: Sql = payloadUpTo(MAX_JSON_BYTES);
export const listedPayload: Sql = payloadUpTo(maxListedBytes);

export type ViewRow = Readonly<{
  id: string;
  workflow_name: string;
  current_step: number;
  status: Status;
  payload_text: string | null;
  has_payload: boolean;
  correlation_id: string | null;
  initiated_by: string | null;
  created_by: string | null;
  error_message: string | null;
  fingerprint: string | null;
  created_at: Date;
  created_at_exact: string;
  updated_at: Date;
  compensation: Compensation;
  needs_attention: boolean;
  stuck_step: number | null;
  stuck_op: Op | null;
  stuck_reason: string | null;
  stuck_step_name: string | null;
  waiting_for: string | null;
  waiting_since: Date | null;
  deadline_at: Date | null;
  definition_hash: string | null;
  wake_at: Date | null;
  pivot_opened: boolean;
  trace: string | null;
}> &
  AbortRow;

export function sagaOf(row: ViewRow): Saga {
  return {
    sagaId: row.id,
    workflowName: row.workflow_name,
    currentStep: row.current_step,
    status: row.status,
    payloadText: row.payload_text,
    isPayloadOmitted: row.has_payload && row.payload_text === null,
    correlationId: row.correlation_id,
    initiatedBy: row.initiated_by,
    createdBy: row.created_by,
    errorMessage: row.error_message,
    fingerprint: row.fingerprint,
    createdAt: row.created_at,
    createdAtExact: row.created_at_exact,
    updatedAt: row.updated_at,
    compensation: row.compensation,
    needsAttention: row.needs_attention,
    stuck:
      row.stuck_op === null || row.stuck_step === null
        ? null
        : {
            step: row.stuck_step,
            stepName: row.stuck_step_name,
            op: row.stuck_op,
            reason: row.stuck_reason ?? '',
          },
    waitingFor:
      row.waiting_for === null || row.waiting_since === null
        ? null
        : { service: row.waiting_for, since: row.waiting_since },
    deadlineAt: row.deadline_at,
    definitionHash: row.definition_hash,
    wakeAt: row.wake_at,
    pivotOpened: row.pivot_opened,
    abort: abortOf(row),
    traceId: readTraceContext({ traceparent: row.trace ?? undefined })?.traceId ?? null,
  };
}

export type Json = Readonly<Record<string, unknown>>;

export const rawOrNull = (text: string | null): RawJson | null => (text === null ? null : rawJson(text));

export function presentSaga(saga: Saga, masks: Masks): Json {
  const cover = createItemCover(masks);
  const { stuck, waitingFor, abort } = saga;
  return {
    saga_id: saga.sagaId,
    workflow_name: saga.workflowName,
    current_step: saga.currentStep,
    status: saga.status,
    payload: rawOrNull(cover.json(saga.payloadText)),
    correlation_id: cover.keyText(saga.correlationId),
    initiated_by: cover.text(saga.initiatedBy),
    created_by: saga.createdBy,
    error_message: cover.text(saga.errorMessage),
    created_at: formatInstant(saga.createdAt),
    updated_at: formatInstant(saga.updatedAt),
    compensation: saga.compensation,
    needs_attention: saga.needsAttention,
    deadline_at: formatInstant(saga.deadlineAt),
    definition_hash: saga.definitionHash,
    fingerprint: saga.fingerprint,
    next_attempt_at: formatInstant(saga.wakeAt),
    pivot_opened: saga.pivotOpened,
    trace_id: saga.traceId,
    ...(abort === null
      ? {}
      : {
          abort: {
            kind: abort.kind,
            actor: abort.by.actor,
            reason: cover.text(abort.by.reason),
            at: formatInstant(new Date(abort.at)),
          },
        }),
    ...(stuck === null
      ? {}
      : { stuck: { step: stuck.stepName, action: stuck.op, reason: cover.text(stuck.reason) } }),
    ...(waitingFor === null
      ? {}
      : { waiting_for: { service: waitingFor.service, since: formatInstant(waitingFor.since) } }),
    ...(saga.isPayloadOmitted ? { payload_omitted: true } : {}),
    ...cover.mark(),
  };
}
