import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import type { Order } from '../domain/order-details.ts';
import {
  conditions,
  estimateCount,
  exactCountLimit,
  listOrder,
  type Count,
  type OrderFilter,
} from './order-filter.ts';
import { listedJson, orderColumns, orderOf, type OrderRow } from './stored-order.ts';

/** The last order of the page before. */
export type Keyset = Readonly<{ id: string; createdAt: string | null }>;

export type ListPage =
  | Readonly<{ by: 'number'; offset: number; pageSize: number }>
  | Readonly<{ by: 'keyset'; after: Keyset | null; pageSize: number }>;

export type OrderPage = Readonly<{ orders: readonly Order[]; count: Count; hasNext: boolean }>;

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

function isAfter(after: Keyset | null): Sql {
  if (after === null) return sql`true`;
  return after.createdAt === null
    ? sql`t.id < ${after.id}::bigint`
    : sql`(t.created_at, t.id) < (${after.createdAt}::timestamptz, ${after.id}::bigint)`;
}
