import { cleanText } from '../../kernel/text.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { rowsOf, type Column } from '../../platform/postgres/rows-of.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { settle } from '../../platform/postgres/work.ts';
import type { Published } from '../domain/decide.ts';
import type { AddedAttempt, SagaSettle } from '../usecase/ports.ts';
import { isActive, sagas } from './saga-rows.ts';

/** Something that has happened to a saga, for whoever listens. */
export type SagaEvent = Readonly<{
  sagaId: string;
  type: Published;
  workflow: string;
  status: string;
  currentStep: number;
  errorMessage: string | null;
}>;

export type AddEvents = (tx: Queryable, events: readonly SagaEvent[]) => Promise<void>;

/**
 * Writes the steps of many sagas in one short transaction: the states, each only where the saga is still ours and
 * nothing more is known of it than it was decided with, and for those that were written their log rows and events.
 * Gives the ids of these.
 */
export async function settleSagas(
  db: Database,
  settles: readonly SagaSettle[],
  addEvents: AddEvents | null,
  { isPrepared = false } = {},
): Promise<ReadonlySet<string>> {
  const events = addEvents === null ? [] : settles.flatMap(eventsOf);
  if (addEvents === null || events.length === 0) return writeStates(db, settles, isPrepared);
  return db.transaction(async (tx) => {
    const settled = await writeStates(tx, settles);
    const told = events.filter(({ sagaId }) => settled.has(sagaId));
    if (told.length > 0) await addEvents(tx, told);
    return settled;
  });
}

function eventsOf({ saga, state, events }: SagaSettle): readonly SagaEvent[] {
  return events.map((type) => ({
    sagaId: saga.id,
    type,
    workflow: saga.workflow.name,
    status: state.status,
    currentStep: state.currentStep,
    errorMessage: state.errorMessage,
  }));
}

const maxText = 4000;
const text = (value: string | null): string | null => (value === null ? null : cleanText(value, maxText));
const json = (value: unknown): string => JSON.stringify(value) ?? 'null';
const instant = (ms: number | null): Date | null => (ms === null ? null : new Date(ms));

/** What is as it is for most sagas is not sent, and read as missing. */
const unless = <T>(value: T, usual: T): T | null => (value === usual ? null : value);

const stateColumns: readonly Column<SagaSettle>[] = [
  [sql`key`, sql`uuid[]`, ({ saga }) => saga.id],
  [sql`epoch`, sql`bigint[]`, ({ saga }) => saga.lease.epoch],
  [sql`known_abort`, sql`text[]`, ({ known }) => known.abort?.kind ?? null],
  [sql`known_over`, sql`boolean[]`, ({ known }) => unless(known.isDeadlineOver, false)],
  [sql`keeps_lease`, sql`boolean[]`, ({ keepsLease }) => unless(keepsLease, true)],
  [sql`setbacks`, sql`int[]`, ({ setbacks = 0 }) => unless(setbacks, 0)],
  [sql`runs_alone`, sql`boolean[]`, ({ runsAlone = false }) => unless(runsAlone, false)],
  [sql`status`, sql`text[]`, ({ state }) => state.status],
  [sql`current_step`, sql`int[]`, ({ state }) => state.currentStep],
  [sql`step_outputs`, sql`jsonb[]`, ({ state }) => json(state.outputs)],
  [sql`error_message`, sql`text[]`, ({ state }) => text(state.errorMessage)],
  [sql`compensation`, sql`text[]`, ({ state }) => unless(state.compensation, 'none')],
  [sql`stuck_step`, sql`int[]`, ({ state }) => state.stuck?.step ?? null],
  [sql`stuck_op`, sql`text[]`, ({ state }) => state.stuck?.op ?? null],
  [sql`stuck_reason`, sql`text[]`, ({ state }) => text(state.stuck?.reason ?? null)],
  [sql`pivot_opened`, sql`boolean[]`, ({ state }) => unless(state.pivotOpened, false)],
  [sql`polls`, sql`int[]`, ({ state }) => state.polling?.polls ?? null],
  [sql`failed_polls`, sql`int[]`, ({ state }) => state.polling?.failedPolls ?? null],
  [sql`wake_at`, sql`timestamptz[]`, ({ state }) => instant(state.wakeAt)],
];

/** The deadline is over and nobody knew: unless it no longer counts. */
export const isDeadlineNews: Sql = sql`
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
  const [settled] = await settle<{ some: readonly string[] | null }>(db, sagas, {
    held: rowsOf(sql`held`, settles, stateColumns),
    count: settles.length,
    guard: sql`
      ${isActive} AND t.lease_owner IS NOT NULL AND t.abort_requested IS NOT DISTINCT FROM held.known_abort
      AND (held.known_over IS TRUE OR (${isDeadlineNews}) IS NOT TRUE)`,
    set: sql`
      status = held.status, current_step = held.current_step, step_outputs = held.step_outputs,
      error_message = held.error_message, compensation = COALESCE(held.compensation, 'none'),
      needs_person = held.stuck_step IS NOT NULL, stuck_step = held.stuck_step, stuck_op = held.stuck_op,
      stuck_reason = held.stuck_reason, pivot_opened = held.pivot_opened IS TRUE,
      deadline_over = held.known_over IS TRUE, polls = held.polls, failed_polls = held.failed_polls,
      wake_at = held.wake_at, setbacks = COALESCE(held.setbacks, 0), runs_alone = held.runs_alone IS TRUE,
      updated_at = now()`,
    keepsLease: sql`held.keeps_lease IS NULL`,
    returning: sql`t.id, t.workflow_name, t.needs_person, t.stuck_op, t.stuck_reason`,
    // As a rule all are written, and then the database sends no ids.
    select: sql`CASE WHEN count(*) < ${settles.length} THEN COALESCE(json_agg(id), '[]') END AS some`,
    also: sql`${closeRows(changed)}${addRows(added)}${tellPeople}`,
    isPrepared,
  });
  return new Set(settled?.some ?? settles.map(({ saga }) => saga.id));
}

type LogEntry = AddedAttempt & Readonly<{ sagaId: string }>;

const logEntryColumns: readonly Column<LogEntry>[] = [
  [sql`saga_id`, sql`uuid[]`, ({ sagaId }) => sagaId],
  [sql`step_index`, sql`int[]`, ({ step }) => step],
  [sql`action`, sql`text[]`, ({ op }) => op],
  [sql`attempt`, sql`int[]`, ({ attempt }) => attempt],
  [sql`status`, sql`text[]`, ({ status }) => status],
  [sql`answer`, sql`text[]`, ({ answer }) => answer],
  [sql`is_unsent`, sql`boolean[]`, ({ isUnsent }) => unless(isUnsent, false)],
  [sql`is_last`, sql`boolean[]`, ({ isLast }) => unless(isLast, false)],
  [sql`response`, sql`jsonb[]`, ({ answer, output }) => (answer === 'done' ? json(output) : null)],
  [sql`error`, sql`text[]`, ({ error }) => text(error)],
  [sql`actor`, sql`text[]`, ({ by }) => by?.actor ?? null],
  [sql`reason`, sql`text[]`, ({ by }) => text(by?.reason ?? null)],
];

function closeRows(entries: readonly LogEntry[]): Sql {
  if (entries.length === 0) return sql``;
  return sql`, closed AS (
    UPDATE saga.saga_step_logs l
    SET status = entry.status, answer = entry.answer, is_unsent = entry.is_unsent IS TRUE,
        is_last = entry.is_last IS TRUE, response_payload = entry.response, error_message = entry.error,
        actor = entry.actor, reason = entry.reason, completed_at = COALESCE(l.completed_at, clock_timestamp()), updated_at = now()
    FROM ${rowsOf(sql`entry`, entries, logEntryColumns)} JOIN settled ON settled.id = entry.saga_id
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
      (saga_id, step_index, step_name, action, attempt, status, answer, is_unsent, is_last, request_payload,
       response_payload, error_message, actor, reason, started_at, completed_at)
    SELECT entry.saga_id, entry.step_index, entry.step_name, entry.action, entry.attempt, entry.status, entry.answer,
           entry.is_unsent IS TRUE, entry.is_last IS TRUE, entry.request, entry.response, entry.error, entry.actor, entry.reason,
           entry.started_at, CASE WHEN entry.status IS NOT NULL THEN clock_timestamp() END
    FROM ${rowsOf(sql`entry`, entries, columns)} JOIN settled ON settled.id = entry.saga_id
  )`;
}

/** What waits for a person is told to one: over the rows of `settled`. */
export const tellPeople: Sql = sql`, told AS (
  INSERT INTO platform.notify_events (slice, kind, subject, item_id, summary)
  SELECT 'saga', CASE stuck_op WHEN 'EXECUTE' THEN 'stuck' ELSE 'compensation_stuck' END, workflow_name, id::text,
         left(COALESCE(stuck_reason, ''), 500)
  FROM settled WHERE needs_person
)`;
