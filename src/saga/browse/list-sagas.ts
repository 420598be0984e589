import type { NameFilter } from '../../kernel/access/scope.ts';
import type { PageRequest } from '../../kernel/page.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { isNamed } from '../../platform/postgres/is-named.ts';
import { joinSql, sql, type Sql } from '../../platform/postgres/sql.ts';
import type { Status } from '../domain/saga-state.ts';
import { hasStatus } from '../saga-table.ts';
import { listedPayload, sagaOf, viewColumns, type Saga, type ViewRow } from './saga-view.ts';

export type SagaFilter = Readonly<{
  workflowName?: string | undefined;
  status?: Status | undefined;
  correlationId?: string | undefined;
  /** Of the failure that they are stuck at or undone for. */
  fingerprint?: string | undefined;
  needsAttention?: boolean | undefined;
  /** The workflows that the caller may see; by default all. */
  names?: NameFilter;
}>;

export type SagaCount = Readonly<{ total: number; isEstimate: boolean }>;
export type SagaPage = Readonly<{ sagas: readonly Saga[]; count: SagaCount; hasNext: boolean }>;

/** Above this a total is an estimate, because counting would take too long. */
const exactCountLimit = 10_000;

/** One page of the sagas that are not archived, newest first, with the total. */
export async function listSagas(db: Queryable, filter: SagaFilter, page: PageRequest): Promise<SagaPage> {
  const count = await countMatching(db, filter);
  const isPastEnd =
    page.by === 'number' && page.offset > 0 && !count.isEstimate && page.offset >= count.total;
  if (isPastEnd) return { sagas: [], count, hasNext: false };
  const rows = await db.query<ViewRow>(sql`
    WITH page AS MATERIALIZED (${pageOf(filter, page, !count.isEstimate)})
    SELECT ${viewColumns}, ${listedPayload} FROM page JOIN saga.saga_states t ON t.id = page.id
    ORDER BY t.created_at DESC, t.id DESC`);
  const { pageSize } = page;
  return { sagas: rows.slice(0, pageSize).map(sagaOf), count, hasNext: rows.length > pageSize };
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

function conditions(
  { workflowName, status, correlationId, fingerprint, needsAttention, names = null }: SagaFilter,
  isOfStatus = hasStatus,
): Sql {
  const all = [isNamed(sql`t.workflow_name`, names)];
  if (workflowName !== undefined) all.push(sql`t.workflow_name = ${workflowName}`);
  if (status !== undefined) all.push(isOfStatus(status));
  if (correlationId !== undefined) all.push(sql`t.correlation_id = ${correlationId}`);
  if (fingerprint !== undefined) all.push(sql`t.fingerprint = ${fingerprint}`);
  if (needsAttention !== undefined)
    all.push(needsAttention ? sql`t.needs_attention` : sql`NOT t.needs_attention`);
  return joinSql(all, sql` AND `);
}

function isAfter(page: PageRequest): Sql {
  const [createdAt, sagaId] = (page.by === 'keyset' ? page.after : null) ?? [];
  if (createdAt === undefined || sagaId === undefined) return sql`true`;
  return sql`(t.created_at, t.id) < (${createdAt}::timestamptz, ${sagaId}::uuid)`;
}

async function countMatching(db: Queryable, filter: SagaFilter): Promise<SagaCount> {
  const rows = await db.query<{ count: bigint }>(sql`
    SELECT count(*) AS count
    FROM (SELECT 1 FROM saga.saga_states t WHERE ${conditions(filter)} LIMIT ${exactCountLimit + 1}) AS counted`);
  const count = Number(rows[0]?.count ?? 0n);
  if (count <= exactCountLimit) return { total: count, isEstimate: false };
  return { total: Math.max(await estimate(db, filter), count), isEstimate: true };
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
