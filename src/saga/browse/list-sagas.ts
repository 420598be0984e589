import assert from 'node:assert/strict';
import type { NameFilter, OwnItems } from '../../kernel/access/scope.ts';
import type { PageRequest } from '../../kernel/page.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { isVisible } from '../../platform/postgres/is-named.ts';
import { joinSql, sql, type Sql } from '../../platform/postgres/sql.ts';
import type { Status } from '../domain/saga-state.ts';
import { hasStatus, isSagaOf } from '../saga-table.ts';
import { listedPayload, sagaOf, viewColumns, type Saga, type ViewRow } from './saga-view.ts';

export type SagaFilter = Readonly<{
  workflowName?: string | undefined;
  /** One of these. */
  statuses?: readonly Status[] | undefined;
  /** At which it stands: the stuck one, else the first that is not done. */
  step?: string | undefined;
  /** The idempotency key with which it was started. */
  startKey?: string | undefined;
  correlationId?: string | undefined;
  definitionHash?: string | undefined;
  /** The service with an open circuit that it waits for. */
  waitingFor?: string | undefined;
  /** Of the failure that they are stuck at or undone for. */
  fingerprint?: string | undefined;
  needsAttention?: boolean | undefined;
  since?: Date | undefined;
  until?: Date | undefined;
  /** The workflows that the caller may see; by default all. */
  names?: NameFilter;
  /** Sagas that the caller sees of other workflows as well. */
  own?: OwnItems | null;
}>;

export type SagaCount = Readonly<{ total: number; isEstimate: boolean }>;
export type SagaPage = Readonly<{
  sagas: readonly Saga[];
  count: SagaCount;
  hasNext: boolean;
  /** The answer is at least as new. */
  asOf: Date;
}>;

/** Above this a total is an estimate, because counting would take too long. */
export const exactCountLimit = 10_000;

/** One page of the sagas that are not archived, newest first, with the total. */
export async function listSagas(db: Queryable, filter: SagaFilter, page: PageRequest): Promise<SagaPage> {
  const { asOf, ...count } = await countMatching(db, filter);
  const isPastEnd =
    page.by === 'number' && page.offset > 0 && !count.isEstimate && page.offset >= count.total;
  if (isPastEnd) return { sagas: [], count, hasNext: false, asOf };
  const rows = await db.query<ViewRow>(sql`
    WITH page AS MATERIALIZED (${pageOf(filter, page, !count.isEstimate)})
    SELECT ${viewColumns}, ${listedPayload} FROM page JOIN saga.saga_states t ON t.id = page.id
    ORDER BY t.created_at DESC, t.id DESC`);
  const { pageSize } = page;
  return { sagas: rows.slice(0, pageSize).map(sagaOf), count, hasNext: rows.length > pageSize, asOf };
}

/**
 * The ids of one page and of one row more, which tells whether there is a next page. If few sagas match, they are
 * selected by the filter and then sorted: they may lie behind a million others in the order of creation, and the
 * planner, which assumes that they are spread evenly, would scan all of those.
 */
function pageOf(filter: SagaFilter, page: PageRequest, areFew: boolean): Sql {
  const all = sql`SELECT t.id, t.created_at FROM saga.saga_states t WHERE ${conditions(filter)}`;
  const offset = page.by === 'number' ? page.offset : 0;
  const inOrder = sql`ORDER BY t.created_at DESC, t.id DESC LIMIT ${page.pageSize + 1} OFFSET ${offset}`;
  if (!areFew) return sql`${all} AND ${isAfter(page)} ${inOrder}`;
  return sql`
    WITH few AS MATERIALIZED (${all})
    SELECT t.id FROM few t WHERE ${isAfter(page)} ${inOrder}`;
}

export function conditions(filter: SagaFilter, isOfStatus = hasStatus): Sql {
  const { workflowName, statuses, step, startKey, correlationId, definitionHash, fingerprint } = filter;
  const { waitingFor, needsAttention, since, until, names = null, own = null } = filter;
  const all = [isVisible({ names, own }, { name: sql`t.workflow_name`, isOf: isSagaOf })];
  if (workflowName !== undefined) all.push(sql`t.workflow_name = ${workflowName}`);
  if (statuses !== undefined) all.push(sql`(${joinSql(statuses.map(isOfStatus), sql` OR `)})`);
  if (step !== undefined) all.push(standsAt(step));
  if (startKey !== undefined) all.push(sql`t.id IN (${startedWith(startKey)})`);
  if (correlationId !== undefined) all.push(sql`t.correlation_id = ${correlationId}`);
  if (definitionHash !== undefined) all.push(sql`t.definition_hash = ${definitionHash}`);
  if (waitingFor !== undefined) all.push(sql`t.waiting_for = ${waitingFor}`);
  if (fingerprint !== undefined) all.push(sql`t.fingerprint = ${fingerprint}`);
  if (needsAttention !== undefined)
    all.push(needsAttention ? sql`t.needs_attention` : sql`NOT t.needs_attention`);
  if (since !== undefined) all.push(sql`t.created_at >= ${since}`);
  if (until !== undefined) all.push(sql`t.created_at < ${until}`);
  return joinSql(all, sql` AND `);
}

/** Completed sagas stand at no step; leaving them out lets the index on the phase find the others. */
function standsAt(step: string): Sql {
  return sql`
    t.phase IN ('NEW', 'FORWARD', 'COMPENSATING', 'FAILED', 'CANCELLED')
    AND (t.definition_hash, COALESCE(t.stuck_step, t.current_step)) IN (
      SELECT d.hash, s.place - 1
      FROM saga.workflow_definitions d
      CROSS JOIN LATERAL jsonb_array_elements(d.definition -> 'steps') WITH ORDINALITY AS s (step, place)
      WHERE s.step ->> 'name' = ${step})`;
}

/** The primary key begins with the name of the workflow. */
function startedWith(key: string): Sql {
  return sql`
    SELECT k.saga_id FROM saga.workflows w
    JOIN saga.saga_start_keys k ON k.workflow_name = w.name AND k.key = ${key}`;
}

function isAfter(page: PageRequest): Sql {
  const [createdAt, sagaId] = (page.by === 'keyset' ? page.after : null) ?? [];
  if (createdAt === undefined || sagaId === undefined) return sql`true`;
  return sql`(t.created_at, t.id) < (${createdAt}::timestamptz, ${sagaId}::uuid)`;
}

export async function countMatching(
  db: Queryable,
  filter: SagaFilter,
): Promise<SagaCount & Readonly<{ asOf: Date }>> {
  const [row] = await db.query<{ count: bigint; as_of: Date }>(sql`
    SELECT count(*) AS count, statement_timestamp() AS as_of
    FROM (SELECT 1 FROM saga.saga_states t WHERE ${conditions(filter)} LIMIT ${exactCountLimit + 1}) AS counted`);
  assert(row !== undefined, 'a count has a row');
  const { as_of: asOf } = row;
  const count = Number(row.count);
  if (count <= exactCountLimit) return { total: count, isEstimate: false, asOf };
  return { total: Math.max(await estimate(db, filter), count), isEstimate: true, asOf };
}

type Plan = readonly Readonly<{ Plan: Readonly<{ 'Plan Rows': number }> }>[];

/**
 * The planner's estimate, from its statistics, without reading rows. It filters by status alone: with the phase too, the
 * planner would multiply the selectivities of two conditions that depend on each other.
 */
async function estimate(db: Queryable, filter: SagaFilter): Promise<number> {
  const isOfStatus = (status: Status): Sql => sql`t.status = ${status}`;
  const rows = await db.query<{ 'QUERY PLAN': Plan }>(sql`
    EXPLAIN (FORMAT JSON) SELECT 1 FROM saga.saga_states t WHERE ${conditions(filter, isOfStatus)}`);
  return rows[0]?.['QUERY PLAN'][0]?.Plan['Plan Rows'] ?? 0;
}
