import { fingerprintOfText } from '../kernel/fingerprint/text-fingerprint.ts';
import { cleanText } from '../kernel/text.ts';
import type { Database, Queryable } from '../platform/postgres/database.ts';
import { unnestRows, type Column } from '../platform/postgres/unnest-rows.ts';
import { prepared, sql, type Sql } from '../platform/postgres/sql.ts';
import { settle } from '../platform/work/work.ts';
import { notifyEvents } from '../platform/work/notify-events.ts';
import type { Lease } from '../kernel/lease.ts';
import { decidingError } from './domain/deciding-error.ts';
import type { Attempt, Known, SagaState } from './domain/saga-state.ts';
import type { Published } from './domain/settlement.ts';
import type { Workflow } from './domain/workflow/workflow.ts';
import { isActive, sagas } from './saga-table.ts';

/** An open attempt is inserted with the request that will be sent. */
export type AddedAttempt = Attempt & Readonly<{ request?: unknown }>;

/** One transition of a saga, written atomically. */
export type SagaSettle = Readonly<{
  saga: Readonly<{ id: string; lease: Lease; workflow: Workflow; correlationId: string | null }>;
  /** The transition was computed with this; if the database knows more by now, nothing is written. */
  known: Known;
  state: SagaState;
  changed: readonly Attempt[];
  added: readonly AddedAttempt[];
  events: readonly Published[];
  /** A call follows; otherwise the lease is released. */
  keepsLease: boolean;
  /** Failed rounds in a row, and whether it runs alone. Reset by default. */
  failedRounds?: number;
  runsAlone?: boolean;
}>;

/** A published event. */
export type SagaEvent = Readonly<{
  sagaId: string;
  type: Published;
  workflow: string;
  correlationId: string | null;
  status: string;
  currentStep: number;
  errorMessage: string | null;
}>;

export type AddEvents = (tx: Queryable, events: readonly SagaEvent[]) => Promise<void>;

/**
 * Writes the transitions of many sagas in one short transaction: each state, if the lease is still ours and nothing new
 * is known about the saga, and with it its log rows and events. Returns the ids that were written.
 */
export async function writeSagas(
  db: Database,
  settles: readonly SagaSettle[],
  addEvents: AddEvents | null,
  { isPrepared = false } = {},
): Promise<ReadonlySet<string>> {
  const events = addEvents === null ? [] : settles.flatMap(eventsOf);
  if (addEvents === null || events.length === 0) return writeStates(db, settles, isPrepared);
  return db.transaction(async (tx) => {
    const settled = await writeStates(tx, settles);
    const published = events.filter(({ sagaId }) => settled.has(sagaId));
    if (published.length > 0) await addEvents(tx, published);
    return settled;
  });
}

function eventsOf({ saga, state, events }: SagaSettle): readonly SagaEvent[] {
  return events.map((type) => ({
    sagaId: saga.id,
    type,
    workflow: saga.workflow.name,
    correlationId: saga.correlationId,
    status: state.status,
    currentStep: state.currentStep,
    errorMessage: state.errorMessage,
  }));
}

const maxText = 4000;
const text = (value: string | null): string | null => (value === null ? null : cleanText(value, maxText));
/** Of the text as it is stored. */
const fingerprint = (error: string | null): string | null => {
  const stored = text(error);
  return stored === null ? null : fingerprintOfText(stored);
};
const json = (value: unknown): string => JSON.stringify(value) ?? 'null';
const instant = (ms: number | null): Date | null => (ms === null ? null : new Date(ms));

/** Default values are sent as NULL. */
const unless = <T>(value: T, usual: T): T | null => (value === usual ? null : value);

const stateColumns: readonly Column<SagaSettle>[] = [
  [sql`key`, sql`uuid[]`, ({ saga }) => saga.id],
  [sql`epoch`, sql`bigint[]`, ({ saga }) => saga.lease.epoch],
  [sql`known_abort`, sql`text[]`, ({ known }) => known.abort?.kind ?? null],
  [sql`known_over`, sql`boolean[]`, ({ known }) => unless(known.isDeadlineOver, false)],
  [sql`keeps_lease`, sql`boolean[]`, ({ keepsLease }) => unless(keepsLease, true)],
  [sql`failed_rounds`, sql`int[]`, ({ failedRounds = 0 }) => unless(failedRounds, 0)],
  [sql`runs_alone`, sql`boolean[]`, ({ runsAlone = false }) => unless(runsAlone, false)],
  [sql`status`, sql`text[]`, ({ state }) => state.status],
  [sql`current_step`, sql`int[]`, ({ state }) => state.currentStep],
  [sql`step_outputs`, sql`jsonb[]`, ({ state }) => json(state.outputs)],
  [sql`error_message`, sql`text[]`, ({ state }) => text(state.errorMessage)],
  [sql`fingerprint`, sql`text[]`, ({ state }) => fingerprint(decidingError(state))],
  [sql`compensation`, sql`text[]`, ({ state }) => unless(state.compensation, 'none')],
  [sql`stuck_step`, sql`int[]`, ({ state }) => state.stuck?.step ?? null],
  [sql`stuck_op`, sql`text[]`, ({ state }) => state.stuck?.op ?? null],
  [sql`stuck_reason`, sql`text[]`, ({ state }) => text(state.stuck?.reason ?? null)],
  [sql`pivot_opened`, sql`boolean[]`, ({ state }) => unless(state.pivotOpened, false)],
  [sql`polls`, sql`int[]`, ({ state }) => state.polling?.polls ?? null],
  [sql`failed_polls`, sql`int[]`, ({ state }) => state.polling?.failedPolls ?? null],
  [sql`waiting_for`, sql`text[]`, ({ state }) => state.waiting?.service ?? null],
  [sql`waiting_since`, sql`timestamptz[]`, ({ state }) => instant(state.waiting?.since ?? null)],
  [sql`wake_at`, sql`timestamptz[]`, ({ state }) => instant(state.wakeAt)],
];

/** The deadline has passed since the state was read, and still counts. */
export const isDeadlineNew: Sql = sql`
  (t.deadline_at <= clock_timestamp() AND NOT t.deadline_over AND NOT t.pivot_opened AND t.status <> 'COMPENSATING')`;

async function writeStates(
  db: Queryable,
  settles: readonly SagaSettle[],
  isPrepared = false,
): Promise<ReadonlySet<string>> {
  const changed = settles.flatMap(({ saga, changed: rows }) =>
    rows.map((row) => ({ sagaId: saga.id, ...row })),
  );
  const added = settles.flatMap(({ saga, added: rows }) =>
    rows.map((row) => ({ sagaId: saga.id, stepName: saga.workflow.steps[row.step]?.name ?? '', ...row })),
  );
  const statement = sql`
    WITH settled AS (
      UPDATE saga.saga_states t
      SET status = attempt.status, current_step = attempt.current_step, step_outputs = attempt.step_outputs,
          error_message = attempt.error_message, fingerprint = attempt.fingerprint, compensation = COALESCE(attempt.compensation, 'none'),
          needs_attention = attempt.stuck_step IS NOT NULL, stuck_step = attempt.stuck_step, stuck_op = attempt.stuck_op,
          stuck_reason = attempt.stuck_reason, pivot_opened = attempt.pivot_opened IS TRUE,
          deadline_over = attempt.known_over IS TRUE, polls = attempt.polls, failed_polls = attempt.failed_polls,
          waiting_for = attempt.waiting_for, waiting_since = attempt.waiting_since, wake_at = attempt.wake_at,
          failed_rounds = COALESCE(attempt.failed_rounds, 0), runs_alone = attempt.runs_alone IS TRUE, updated_at = now(),
          lease_owner = CASE WHEN attempt.keeps_lease IS NULL THEN t.lease_owner END,
          lease_until = CASE WHEN attempt.keeps_lease IS NULL THEN t.lease_until END,
          lease_lost = false
      FROM ${unnestRows(sql`attempt`, settles, stateColumns)}
      WHERE t.id = attempt.key AND t.lease_epoch = attempt.epoch
        AND (${isActive} AND t.lease_owner IS NOT NULL AND t.abort_requested IS NOT DISTINCT FROM attempt.known_abort
             AND (attempt.known_over IS TRUE OR (${isDeadlineNew}) IS NOT TRUE)) IS TRUE
      RETURNING t.id, t.workflow_name, t.needs_attention, t.stuck_op, t.stuck_reason
    )${closeRows(changed)}${addRows(added)}${notifyStuck}
    SELECT CASE WHEN count(*) < ${settles.length} THEN COALESCE(json_agg(id), '[]') END AS some FROM settled`;
  // Usually all are written; then no ids are returned.
  const [settled] = await settle<{ some: readonly string[] | null }>(
    db,
    { slice: sagas.slice, count: settles.length },
    isPrepared ? prepared(statement) : statement,
  );
  return new Set(settled?.some ?? settles.map(({ saga }) => saga.id));
}

type LogEntry = AddedAttempt & Readonly<{ sagaId: string }>;

/** The response of a done attempt; of an open one, what its poll refers to. */
function responseOf({ status, answer, output }: LogEntry): string | null {
  return answer === 'done' || (status === null && output !== null) ? json(output) : null;
}

const logEntryColumns: readonly Column<LogEntry>[] = [
  [sql`saga_id`, sql`uuid[]`, ({ sagaId }) => sagaId],
  [sql`step_index`, sql`int[]`, ({ step }) => step],
  [sql`action`, sql`text[]`, ({ op }) => op],
  [sql`attempt`, sql`int[]`, ({ attempt }) => attempt],
  [sql`status`, sql`text[]`, ({ status }) => status],
  [sql`answer`, sql`text[]`, ({ answer }) => answer],
  [sql`is_unsent`, sql`boolean[]`, ({ isUnsent }) => unless(isUnsent, false)],
  [sql`is_last`, sql`boolean[]`, ({ isLast }) => unless(isLast, false)],
  [sql`is_down`, sql`boolean[]`, ({ isDown }) => unless(isDown, false)],
  [sql`spent_ms`, sql`bigint[]`, ({ spentMs }) => unless(spentMs, 0)],
  [sql`response`, sql`jsonb[]`, responseOf],
  [sql`error`, sql`text[]`, ({ error }) => text(error)],
  [sql`fingerprint`, sql`text[]`, ({ error }) => fingerprint(error)],
  [sql`actor`, sql`text[]`, ({ by }) => by?.actor ?? null],
  [sql`reason`, sql`text[]`, ({ by }) => text(by?.reason ?? null)],
];

function closeRows(entries: readonly LogEntry[]): Sql {
  if (entries.length === 0) return sql``;
  return sql`, closed AS (
    UPDATE saga.saga_step_logs l
    SET status = entry.status, answer = entry.answer, is_unsent = entry.is_unsent IS TRUE,
        is_last = entry.is_last IS TRUE, is_down = entry.is_down IS TRUE, spent_ms = COALESCE(entry.spent_ms, 0),
        response_payload = entry.response, error_message = entry.error, fingerprint = entry.fingerprint,
        actor = entry.actor, reason = entry.reason, updated_at = now(),
        completed_at = CASE WHEN entry.status IS NOT NULL THEN COALESCE(l.completed_at, clock_timestamp()) END
    FROM ${unnestRows(sql`entry`, entries, logEntryColumns)} JOIN settled ON settled.id = entry.saga_id
    WHERE l.saga_id = entry.saga_id AND l.step_index = entry.step_index AND l.action = entry.action
      AND l.attempt = entry.attempt
  )`;
}

function addRows(entries: readonly (LogEntry & Readonly<{ stepName: string }>)[]): Sql {
  if (entries.length === 0) return sql``;
  const columns: readonly Column<LogEntry & Readonly<{ stepName: string }>>[] = [
    ...logEntryColumns,
    [sql`step_name`, sql`text[]`, ({ stepName }) => stepName],
    [sql`request`, sql`jsonb[]`, ({ request }) => (request === undefined ? null : json(request))],
    [sql`started_at`, sql`timestamptz[]`, ({ startedAt }) => instant(startedAt)],
  ];
  return sql`, opened AS (
    INSERT INTO saga.saga_step_logs
      (saga_id, step_index, step_name, action, attempt, status, answer, is_unsent, is_last, is_down, spent_ms, request_payload,
       response_payload, error_message, fingerprint, actor, reason, started_at, completed_at)
    SELECT entry.saga_id, entry.step_index, entry.step_name, entry.action, entry.attempt, entry.status, entry.answer,
           entry.is_unsent IS TRUE, entry.is_last IS TRUE, entry.is_down IS TRUE, COALESCE(entry.spent_ms, 0), entry.request, entry.response, entry.error,
           entry.fingerprint, entry.actor, entry.reason,
           entry.started_at, CASE WHEN entry.status IS NOT NULL THEN clock_timestamp() END
    FROM ${unnestRows(sql`entry`, entries, columns)} JOIN settled ON settled.id = entry.saga_id
  )`;
}

/** Notifies people of sagas that need attention; reads the rows of `settled`. */
export const notifyStuck: Sql = notifyEvents(
  {
    slice: sql`'saga'`,
    kind: sql`CASE stuck_op WHEN 'EXECUTE' THEN 'stuck' ELSE 'compensation_stuck' END`,
    subject: sql`workflow_name`,
    itemId: sql`id`,
    summary: sql`stuck_reason`,
  },
  { from: sql`settled`, where: sql`needs_attention` },
);
