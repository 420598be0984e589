import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { attemptsOf, type AuditEntry } from '../domain/attempts.ts';
import type { Order, OrderDetails, OrderHistory } from '../domain/order-details.ts';
import { orderNotFound } from '../order-requests.ts';
import { findLanePosition } from './lane-position.ts';
import { jsonBytes, orderColumns, orderOf, wholeJson, type OrderRow } from './stored-order.ts';

/** A rate-limited order can collect a row per attempt for days; only the newest rows are shown. */
const auditLimit = 10_000;

/** Live or archived. */
export async function findOrder(db: Queryable, id: bigint): Promise<Order | null> {
  const [row] = await db.query<OrderRow>(sql`
    SELECT ${orderColumns}, ${wholeJson}, NULL::timestamptz AS archived_at
    FROM outbox.outbox_orders t WHERE t.id = ${id}
    UNION ALL
    SELECT ${orderColumns}, ${wholeJson}, t.archived_at
    FROM outbox.outbox_orders_archive t WHERE t.id = ${id}`);
  return row === undefined ? null : orderOf(row);
}

export async function getOrderDetails(db: Queryable, id: bigint): Promise<OrderDetails> {
  const order = await findOrder(db, id);
  if (order === null) throw orderNotFound(id);
  return { ...(await addHistory(db, order)), lane: await findLanePosition(db, order) };
}

export async function addHistory(db: Queryable, order: Order): Promise<OrderHistory> {
  const audit = await selectAudit(db, order.id);
  return { order, audit, attempts: attemptsOf(audit) };
}

/** Every transition, oldest first. */
async function selectAudit(db: Queryable, id: bigint): Promise<readonly AuditEntry[]> {
  const rows = await db.query<AuditEntry>(sql`
    SELECT id, status_from AS "statusFrom", status_to AS "statusTo", retry_count AS "retryCount",
           last_error AS "lastError", trace_id AS "traceId", broker_order_id AS "brokerOrderId",
           lease_epoch AS "leaseEpoch", actor, reason, at
    FROM outbox.outbox_audit
    WHERE outbox_id = ${id}
    ORDER BY id DESC
    LIMIT ${auditLimit}`);
  return rows.toReversed();
}

/** How many bytes of JSON these orders add to an answer together. */
export async function sizeOfOrders(db: Queryable, ids: readonly bigint[]): Promise<number> {
  const rows = await db.query<{ bytes: bigint }>(sql`
    SELECT ${jsonBytes} FROM outbox.outbox_orders t WHERE t.id = ANY(${ids}::bigint[])
    UNION ALL
    SELECT ${jsonBytes} FROM outbox.outbox_orders_archive t WHERE t.id = ANY(${ids}::bigint[])`);
  return rows.reduce((sum, row) => sum + Number(row.bytes), 0);
}
