import { instantMs, type ReadInstant } from '../kernel/timestamp.ts';
import { sql, type Sql } from '../platform/postgres/sql.ts';
import type { WorkTable } from '../platform/work/work.ts';
import type {
  Abort,
  AnswerClass,
  Attempt,
  Compensation,
  LogStatus,
  Op,
  SagaState,
  Status,
} from './domain/saga-state.ts';

export const sagas: WorkTable = {
  slice: 'saga',
  table: sql`saga.saga_states`,
  key: sql`id`,
  keyArray: sql`uuid[]`,
};

/** Notified when sagas become due. */
export const sagaChannel = 'saga';

/** The subject has started the saga `t` over HTTP. */
export function isSagaOf(subject: string): Sql {
  return sql`t.created_by = ${subject}`;
}

export const isActive: Sql = sql`t.status IN ('STARTED', 'RUNNING', 'COMPENSATING')`;

/** The condition that `t` has the status, in a form that the index on the phase serves. */
export function hasStatus(status: Status): Sql {
  if (status === 'STARTED') return sql`t.phase IN ('NEW', 'FORWARD') AND t.status = 'STARTED'`;
  if (status === 'RUNNING') return sql`t.phase = 'FORWARD' AND t.status = 'RUNNING'`;
  return sql`t.phase = ${status}`;
}

export type SagaRow = Readonly<{
  id: string;
  workflow_name: string;
  definition_hash: string;
  correlation_id: string | null;
  current_step: number;
  status: Status;
  payload: unknown;
  error_message: string | null;
  step_outputs: Readonly<Record<string, unknown>>;
  created_at: Date;
  wake_at: Date | null;
  deadline_at: Date | null;
  deadline_over: boolean;
  polls: number | null;
  failed_polls: number | null;
  waiting_for: string | null;
  waiting_since: Date | null;
  pivot_opened: boolean;
  compensation: Compensation;
  stuck_step: number | null;
  stuck_op: Op | null;
  stuck_reason: string | null;
  trace: string | null;
  lease_lost: boolean;
  failed_rounds: number;
  runs_alone: boolean;
}> &
  AbortRow;

export type AbortRow = Readonly<{
  abort_requested: Abort['kind'] | null;
  abort_actor: string | null;
  abort_reason: string | null;
  abort_at: Date | null;
}>;

/** All columns except the payload and the responses of steps, which may be large. */
export const sagaHeads: Sql = sql`
  t.id, t.workflow_name, t.definition_hash, t.correlation_id, t.current_step, t.status, t.error_message, t.created_at,
  t.wake_at, t.deadline_at, t.deadline_over, t.polls, t.failed_polls, t.waiting_for, t.waiting_since, t.pivot_opened,
  t.compensation, t.stuck_step, t.stuck_op, t.stuck_reason, t.trace, t.lease_lost, t.failed_rounds, t.runs_alone,
  t.abort_requested, t.abort_actor, t.abort_reason, t.abort_at`;

export const sagaColumns: Sql = sql`${sagaHeads}, t.payload, t.step_outputs`;

export type LogRow = Readonly<{
  saga_id: string;
  step_index: number;
  action: Op;
  attempt: number;
  status: LogStatus | null;
  answer: AnswerClass | null;
  is_unsent: boolean;
  is_last: boolean;
  is_down: boolean;
  spent_ms: bigint;
  response_payload: unknown;
  error_message: string | null;
  actor: string | null;
  reason: string | null;
  started_at: Date;
}>;

const logBase: Sql = sql`
  l.saga_id, l.step_index, l.action, l.attempt, l.status, l.answer, l.is_unsent, l.is_last, l.is_down, l.spent_ms, l.error_message,
  l.actor, l.reason, l.started_at`;

/** Without responses, which may be large, except that of an open attempt, which its poll refers to. */
export const logHeads: Sql = sql`
  ${logBase}, CASE WHEN l.status IS NULL THEN l.response_payload END AS response_payload`;

export const logColumns: Sql = sql`${logBase}, l.response_payload`;

/**
 * The order of the starts: actions by step, then undos in reverse. It cannot be derived from times, which processes read
 * from their own estimates of the database's clock.
 */
export const logOrder: Sql = sql`
  l.action DESC, CASE l.action WHEN 'EXECUTE' THEN l.step_index ELSE -l.step_index END, l.attempt`;

/** The log must be in `logOrder`. */
export function stateOf(row: SagaRow, log: readonly LogRow[]): SagaState {
  return {
    status: row.status,
    currentStep: row.current_step,
    outputs: row.step_outputs,
    compensation: row.compensation,
    errorMessage: row.error_message,
    stuck:
      row.stuck_step === null || row.stuck_op === null
        ? null
        : { step: row.stuck_step, op: row.stuck_op, reason: row.stuck_reason ?? '' },
    pivotOpened: row.pivot_opened,
    abort: abortOf(row),
    isDeadlineOver: row.deadline_over,
    log: log.map(attemptOf),
    deadlineAt: msOrNull(row.deadline_at),
    polling:
      row.polls === null || row.failed_polls === null
        ? null
        : { polls: row.polls, failedPolls: row.failed_polls },
    waiting:
      row.waiting_for === null || row.waiting_since === null
        ? null
        : { service: row.waiting_for, since: row.waiting_since.getTime() },
    wakeAt: msOrNull(row.wake_at),
  };
}

const msOrNull = (instant: ReadInstant | null): number | null =>
  instant === null ? null : instantMs(instant);

export function abortOf(row: AbortRow): Abort | null {
  if (row.abort_requested === null) return null;
  return {
    kind: row.abort_requested,
    by: { actor: row.abort_actor ?? '', reason: row.abort_reason ?? '' },
    at: msOrNull(row.abort_at) ?? 0,
  };
}

function attemptOf(row: LogRow): Attempt {
  return {
    step: row.step_index,
    op: row.action,
    attempt: row.attempt,
    startedAt: row.started_at.getTime(),
    status: row.status,
    answer: row.answer,
    isUnsent: row.is_unsent,
    isLast: row.is_last,
    isDown: row.is_down,
    spentMs: Number(row.spent_ms),
    output: row.answer === 'done' || row.status === null ? row.response_payload : null,
    error: row.error_message,
    by: row.actor === null ? null : { actor: row.actor, reason: row.reason ?? '' },
  };
}
