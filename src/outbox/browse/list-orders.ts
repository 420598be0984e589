import type { Queryable } from '../../platform/postgres/database.ts';
import type { NameFilter } from '../../kernel/access/scope.ts';
import { isNamed } from '../../platform/postgres/is-named.ts';
import { joinSql, sql, type Sql } from '../../platform/postgres/sql.ts';
import type { Status } from '../domain/order.ts';
import type { Order } from '../domain/order-details.ts';
import { listedJson, orderColumns, orderOf, type OrderRow } from './stored-order.ts';

export type OrderFilter = Readonly<{
  status?: Status | undefined;
  destination?: string | undefined;
  idempotencyKey?: string | undefined;
  fingerprint?: string | undefined;
  /** Created at or after it. */
  createdFrom?: Date | undefined;
  /** Created before it. */
  createdTo?: Date | undefined;
  /** Dead and not yet resolved. */
  needsAttention?: true | undefined;
  /** The destinations that the caller may see; by default all. */
  names?: NameFilter;
}>;

/** The last order of the page before. */
export type Keyset = Readonly<{ id: string; createdAt: string | null }>;

export type ListPage =
  | Readonly<{ by: 'number'; offset: number; pageSize: number }>
  | Readonly<{ by: 'keyset'; after: Keyset | null; pageSize: number }>;

export type Count = Readonly<{ total: number; isEstimate: boolean }>;

export type OrderPage = Readonly<{ orders: readonly Order[]; count: Count; hasNext: boolean }>;

/** Larger totals are estimated. */
const exactCountLimit = 10_000;

/** One page of live orders, newest first, with the total. It reads one extra row to know whether a next page exists. */
export async function listOrders(db: Queryable, filter: OrderFilter, page: ListPage): Promise<OrderPage> {
  const count = await countOrders(db, filter);
  const offset = page.by === 'number' ? page.offset : 0;
  const isPastTheEnd = page.by === 'number' && !count.isEstimate && offset >= count.total;
  if (isPastTheEnd) return { orders: [], count, hasNext: false };
  const after = page.by === 'keyset' ? page.after : null;
  const rows = await selectOrders(db, filter, { limit: page.pageSize + 1, offset, after });
  return { orders: rows.slice(0, page.pageSize), count, hasNext: rows.length > page.pageSize };
}

async function selectOrders(
  db: Queryable,
  filter: OrderFilter,
  { limit, offset, after }: Readonly<{ limit: number; offset: number; after: Keyset | null }>,
): Promise<readonly Order[]> {
  const rows = await db.query<OrderRow>(sql`
    WITH page AS MATERIALIZED (
      SELECT t.id FROM outbox.outbox_orders t
      WHERE ${conditions(filter)} AND ${isAfter(after)}
      ORDER BY ${listOrder(filter)}
      LIMIT ${limit} OFFSET ${offset}
    )
    SELECT ${orderColumns}, ${listedJson}, NULL::timestamptz AS archived_at
    FROM page JOIN outbox.outbox_orders t ON t.id = page.id
    ORDER BY ${listOrder(filter)}`);
  return rows.map(orderOf);
}

/** Sorted like the list, so that it uses the same index and stops as early. */
async function countOrders(db: Queryable, filter: OrderFilter): Promise<Count> {
  const rows = await db.query<{ count: bigint }>(sql`
    SELECT count(*) AS count FROM (
      SELECT 1 FROM outbox.outbox_orders t WHERE ${conditions(filter)}
      ORDER BY ${listOrder(filter)}
      LIMIT ${exactCountLimit + 1}
    ) AS counted`);
  const count = Number(rows[0]?.count ?? 0n);
  if (count <= exactCountLimit) return { total: count, isEstimate: false };
  return { total: Math.max(await estimateCount(db, filter), count), isEstimate: true };
}

type Plan = readonly Readonly<{ Plan: Readonly<{ 'Plan Rows': number }> }>[];

/** The planner's estimate, from its statistics alone. */
async function estimateCount(db: Queryable, filter: OrderFilter): Promise<number> {
  const rows = await db.query<{ 'QUERY PLAN': Plan }>(sql`
    EXPLAIN (FORMAT JSON) SELECT 1 FROM outbox.outbox_orders t WHERE ${conditions(filter)}`);
  return rows[0]?.['QUERY PLAN'][0]?.Plan['Plan Rows'] ?? 0;
}

/** Filters by time use the index on `created_at`, all others the primary key; the two orders may differ slightly. */
export function isByTime({ createdFrom, createdTo }: OrderFilter): boolean {
  return createdFrom !== undefined || createdTo !== undefined;
}

function listOrder(filter: OrderFilter): Sql {
  return isByTime(filter) ? sql`t.created_at DESC, t.id DESC` : sql`t.id DESC`;
}

function conditions(filter: OrderFilter): Sql {
  const { status, destination, idempotencyKey, fingerprint, createdFrom, createdTo, needsAttention } = filter;
  const all = [isNamed(sql`t.destination`, filter.names ?? null)];
  if (idempotencyKey !== undefined) all.push(sql`t.idempotency_key = ${idempotencyKey}`);
  if (fingerprint !== undefined) all.push(sql`t.fingerprint = ${fingerprint}`);
  if (destination !== undefined) all.push(sql`t.destination = ${destination}`);
  if (status !== undefined) all.push(sql`t.status = ${status}`);
  if (needsAttention !== undefined) all.push(sql`t.status = 'dead' AND t.resolution IS NULL`);
  if (createdFrom !== undefined) all.push(sql`t.created_at >= ${createdFrom}`);
  if (createdTo !== undefined) all.push(sql`t.created_at < ${createdTo}`);
  return joinSql(all, sql` AND `);
}

function isAfter(after: Keyset | null): Sql {
  if (after === null) return sql`true`;
  return after.createdAt === null
    ? sql`t.id < ${after.id}::bigint`
    : sql`(t.created_at, t.id) < (${after.createdAt}::timestamptz, ${after.id}::bigint)`;
}
