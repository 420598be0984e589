import type { NameFilter, OwnItems } from '../../kernel/access/scope.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { isVisible } from '../../platform/postgres/is-named.ts';
import { joinSql, sql, type Sql } from '../../platform/postgres/sql.ts';
import type { Status } from '../domain/order.ts';
import { isOrderOf } from '../orders-table.ts';

/** Which live orders are meant. */
export type OrderFilter = Readonly<{
  /** One of these. */
  status?: readonly Status[] | undefined;
  destination?: string | undefined;
  orderingKey?: string | undefined;
  idempotencyKey?: string | undefined;
  fingerprint?: string | undefined;
  /** The code with which the last error begins. */
  errorCode?: string | undefined;
  /** Created at or after it. */
  createdFrom?: Date | undefined;
  /** Created before it. */
  createdTo?: Date | undefined;
  /** Dead and not yet resolved. */
  needsAttention?: boolean | undefined;
  /** Not sent, though an attempt may have had its effect. */
  inDoubt?: boolean | undefined;
  /** Waits for an earlier order of its ordering key. */
  isBlocked?: boolean | undefined;
  /** The destinations that the caller may see; by default all. */
  names?: NameFilter;
  /** Orders that the caller sees in other destinations as well. */
  own?: OwnItems | null;
}>;

export type Count = Readonly<{ total: number; isEstimate: boolean }>;

/** Larger totals are estimated. */
export const exactCountLimit = 10_000;

/** Filters by time use the index on `created_at`, all others the primary key; the two orders may differ slightly. */
export function isByTime({ createdFrom, createdTo }: OrderFilter): boolean {
  return createdFrom !== undefined || createdTo !== undefined;
}

/** Newest first. */
export function listOrder(filter: OrderFilter): Sql {
  return isByTime(filter) ? sql`t.created_at DESC, t.id DESC` : sql`t.id DESC`;
}

export function conditions(filter: OrderFilter): Sql {
  const { status, destination, orderingKey, idempotencyKey, fingerprint, errorCode } = filter;
  const { createdFrom, createdTo, needsAttention, inDoubt, isBlocked } = filter;
  const visible = { names: filter.names ?? null, own: filter.own ?? null };
  const all = [isVisible(visible, { name: sql`t.destination`, isOf: isOrderOf })];
  if (idempotencyKey !== undefined) all.push(sql`t.idempotency_key = ${idempotencyKey}`);
  if (fingerprint !== undefined) all.push(sql`t.fingerprint = ${fingerprint}`);
  if (destination !== undefined) all.push(sql`t.destination = ${destination}`);
  if (orderingKey !== undefined) all.push(sql`t.ordering_key = ${orderingKey}`);
  if (status !== undefined) all.push(isOneOf(status));
  if (errorCode !== undefined) all.push(sql`${errorCodeOf} = ${errorCode}`);
  if (needsAttention !== undefined)
    all.push(whether(needsAttention, sql`t.status = 'dead' AND t.resolution IS NULL`));
  if (inDoubt !== undefined) all.push(whether(inDoubt, sql`t.in_doubt AND t.status <> 'sent'`));
  if (isBlocked !== undefined) all.push(whether(isBlocked, sql`t.held AND t.status IN ('queued', 'failed')`));
  if (createdFrom !== undefined) all.push(sql`t.created_at >= ${createdFrom}`);
  if (createdTo !== undefined) all.push(sql`t.created_at < ${createdTo}`);
  return joinSql(all, sql` AND `);
}

function whether(isTrue: boolean, condition: Sql): Sql {
  return isTrue ? condition : sql`NOT (${condition})`;
}

/** `last_error` is `CODE: detail`. */
export const errorCodeOf: Sql = sql`left(split_part(t.last_error, ':', 1), 64)`;

/** One status is compared as such, so that the index of the statuses that are not `sent` also sorts. */
function isOneOf(among: readonly Status[]): Sql {
  const [first] = among;
  return among.length === 1 ? sql`t.status = ${first}` : sql`t.status = ANY(${among}::text[])`;
}

type Plan = readonly Readonly<{ Plan: Readonly<{ 'Plan Rows': number }> }>[];

/** The planner's estimate, from its statistics alone. */
export async function estimateCount(db: Queryable, filter: OrderFilter): Promise<number> {
  const rows = await db.query<{ 'QUERY PLAN': Plan }>(sql`
    EXPLAIN (FORMAT JSON) SELECT 1 FROM outbox.outbox_orders t WHERE ${conditions(filter)}`);
  return rows[0]?.['QUERY PLAN'][0]?.Plan['Plan Rows'] ?? 0;
}
