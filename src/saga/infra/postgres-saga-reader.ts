import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { joinSql, sql, type Sql } from '../../platform/postgres/sql.ts';
import type { Compensation, Op, Status } from '../domain/saga-state.ts';
import type {
  Count,
  Keyset,
  ListWindow,
  LoggedStep,
  Saga,
  SagaFilter,
  SagaReader,
} from '../usecase/reading-ports.ts';
import { hasStatus } from './saga-rows.ts';

/** Beyond this a total is an estimate: counting on would cost more than the answer is worth. */
const exactCountLimit = 10_000;
/** A list leaves larger payloads out, so that a page of them cannot grow to a hundred megabytes. */
const listedBytes = 16_384;

export function createPostgresSagaReader(db: Database): SagaReader {
  return {
    find: (sagaId) =>
      db.transaction(async (tx) => {
        // The saga and its log as of one moment, also where it is being archived.
        await tx.query(sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY`);
        const [row] = await tx.query<SagaRow>(sql`
          SELECT ${columns}, ${wholePayload} FROM saga.saga_states t WHERE t.id = ${sagaId}
          UNION ALL
          SELECT ${columns}, ${wholePayload} FROM saga.saga_states_archive t WHERE t.id = ${sagaId}`);
        return row === undefined ? null : { saga: sagaOf(row), steps: await selectSteps(tx, sagaId) };
      }),

    async list(filter, window) {
      const count = await countMatching(db, filter);
      // Beyond the end there is nothing to skip to; an estimate does not know where the end is.
      if (window.offset > 0 && !count.isEstimate && window.offset >= count.total) return { sagas: [], count };
      const rows = await db.query<SagaRow>(sql`
        WITH page AS MATERIALIZED (${pageOf(filter, window, !count.isEstimate)})
        SELECT ${columns}, ${listedPayload} FROM page JOIN saga.saga_states t ON t.id = page.id
        ORDER BY t.created_at DESC, t.id DESC`);
      return { sagas: rows.map(sagaOf), count };
    },
  };
}

/**
 * Where few sagas match, all of them are found by what they match, and sorted. By the time of their creation they
 * might lie behind a million others that do not match, and the planner, which takes them to lie anywhere, would look
 * at each of those.
 */
function pageOf(filter: SagaFilter, { limit, offset, after }: ListWindow, areFew: boolean): Sql {
  const all = sql`SELECT t.id, t.created_at FROM saga.saga_states t WHERE ${conditions(filter)}`;
  const inOrder = sql`ORDER BY t.created_at DESC, t.id DESC LIMIT ${limit} OFFSET ${offset}`;
  if (!areFew) return sql`${all} AND ${isAfter(after)} ${inOrder}`;
  return sql`
    WITH few AS MATERIALIZED (${all})
    SELECT t.id FROM few t WHERE ${isAfter(after)} ${inOrder}`;
}

function conditions(
  { workflowName, status, correlationId, needsPerson }: SagaFilter,
  isOfStatus = hasStatus,
): Sql {
  const all = [sql`true`];
  if (workflowName !== undefined) all.push(sql`t.workflow_name = ${workflowName}`);
  if (status !== undefined) all.push(isOfStatus(status));
  if (correlationId !== undefined) all.push(sql`t.correlation_id = ${correlationId}`);
  if (needsPerson !== undefined) all.push(needsPerson ? sql`t.needs_person` : sql`NOT t.needs_person`);
  return joinSql(all, sql` AND `);
}

function isAfter(after: Keyset | null): Sql {
  if (after === null) return sql`true`;
  return sql`(t.created_at, t.id) < (${after.createdAt}::timestamptz, ${after.sagaId}::uuid)`;
}

async function countMatching(db: Queryable, filter: SagaFilter): Promise<Count> {
  const rows = await db.query<{ count: bigint }>(sql`
    SELECT count(*) AS count
    FROM (SELECT 1 FROM saga.saga_states t WHERE ${conditions(filter)} LIMIT ${exactCountLimit + 1}) AS counted`);
  const count = Number(rows[0]?.count ?? 0n);
  if (count <= exactCountLimit) return { total: count, isEstimate: false };
  return { total: Math.max(await estimate(db, filter), count), isEstimate: true };
}

type Plan = readonly Readonly<{ Plan: Readonly<{ 'Plan Rows': number }> }>[];

/**
 * What the planner thinks: from its statistics, without looking at a row. Of the status alone: it would take the phase
 * for a second condition, which half of them meet.
 */
async function estimate(db: Queryable, filter: SagaFilter): Promise<number> {
  const isOfStatus = (status: Status): Sql => sql`t.status = ${status}`;
  const rows = await db.query<{ 'QUERY PLAN': Plan }>(sql`
    EXPLAIN (FORMAT JSON) SELECT 1 FROM saga.saga_states t WHERE ${conditions(filter, isOfStatus)}`);
  return rows[0]?.['QUERY PLAN'][0]?.Plan['Plan Rows'] ?? 0;
}

/** Of the row `t`. */
const columns: Sql = sql`
  t.id, t.workflow_name, t.current_step, t.status, t.correlation_id, t.initiated_by, t.error_message, t.created_at,
  to_char(t.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS created_at_exact, t.updated_at,
  t.compensation, t.needs_person, t.stuck_op, t.stuck_reason, t.deadline_at, t.definition_hash,
  (SELECT d.definition -> 'steps' -> t.stuck_step ->> 'name' FROM saga.workflow_definitions d
   WHERE t.stuck_step IS NOT NULL AND d.hash = COALESCE(
     t.definition_hash,
     -- Begun without one, it would go on with this.
     (SELECT w.current_hash FROM saga.workflows w WHERE w.name = t.workflow_name))) AS stuck_step_name`;

const wholePayload: Sql = sql`t.payload::text AS payload_text, false AS payload_omitted`;

/** As long as it is when it is shown; the size of the column is what compression has made of it. */
const isLarge: Sql = sql`octet_length(t.payload::text) > ${listedBytes}`;
const listedPayload: Sql = sql`
  CASE WHEN NOT ${isLarge} THEN t.payload::text END AS payload_text, ${isLarge} IS TRUE AS payload_omitted`;

type SagaRow = Readonly<{
  id: string;
  workflow_name: string;
  current_step: number;
  status: Status;
  payload_text: string | null;
  payload_omitted: boolean;
  correlation_id: string | null;
  initiated_by: string | null;
  error_message: string | null;
  created_at: Date;
  created_at_exact: string;
  updated_at: Date;
  compensation: Compensation;
  needs_person: boolean;
  stuck_op: Op | null;
  stuck_reason: string | null;
  stuck_step_name: string | null;
  deadline_at: Date | null;
  definition_hash: string | null;
}>;

function sagaOf(row: SagaRow): Saga {
  return {
    sagaId: row.id,
    workflowName: row.workflow_name,
    currentStep: row.current_step,
    status: row.status,
    payloadText: row.payload_text,
    isPayloadOmitted: row.payload_omitted,
    correlationId: row.correlation_id,
    initiatedBy: row.initiated_by,
    errorMessage: row.error_message,
    createdAt: row.created_at,
    createdAtExact: row.created_at_exact,
    updatedAt: row.updated_at,
    compensation: row.compensation,
    needsPerson: row.needs_person,
    stuck:
      row.stuck_op === null
        ? null
        : { stepName: row.stuck_step_name, op: row.stuck_op, reason: row.stuck_reason ?? '' },
    deadlineAt: row.deadline_at,
    definitionHash: row.definition_hash,
  };
}

const stepColumns: Sql = sql`
  l.id, l.step_index AS "stepIndex", l.step_name AS "stepName", l.action, l.status,
  l.request_payload::text AS "requestText", l.response_payload::text AS "responseText",
  l.error_message AS "errorMessage", l.started_at AS "startedAt", l.completed_at AS "completedAt",
  l.updated_at AS "updatedAt", l.attempt, l.actor, l.reason`;

async function selectSteps(tx: Queryable, sagaId: string): Promise<readonly LoggedStep[]> {
  return tx.query<LoggedStep>(sql`
    SELECT ${stepColumns} FROM saga.saga_step_logs l WHERE l.saga_id = ${sagaId}
    UNION ALL
    SELECT ${stepColumns} FROM saga.saga_step_logs_archive l WHERE l.saga_id = ${sagaId}
    ORDER BY "stepIndex", "startedAt", action DESC, attempt`);
}
