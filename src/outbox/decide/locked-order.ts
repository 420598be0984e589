import type { Act } from '../../kernel/audit/act.ts';
import { codeOf } from '../../kernel/errors.ts';
import { cleanText } from '../../kernel/text.ts';
import { recordAct } from '../../platform/audit/record-act.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { errorText, type Resolution, type Status } from '../domain/order.ts';
import { resolutionOf, type Action } from '../domain/order-action.ts';
import { orderBusy } from '../order-requests.ts';
import { hasSucceeded, laneOf, lockLanes, lockLedger, type Lane } from '../orders-table.ts';

/** An order whose lane, ledger row and own row are locked by the transaction that decides about it. */
export type LockedOrder = Readonly<{
  id: bigint;
  status: Status;
  resolution: Resolution | null;
  in_doubt: boolean;
  has_succeeded: boolean;
  retry_count: number;
  idempotency_key: string;
  destination: string;
  trace_id: string | null;
  ordering_seq: bigint | null;
  lanes: readonly Lane[];
}>;

/** Runs `work` with the order locked; null if the order is not in the live table. */
export async function withLockedOrder<T extends object>(
  db: Database,
  id: bigint,
  work: (tx: Queryable, order: LockedOrder) => Promise<T>,
): Promise<T | null> {
  try {
    return await db.transaction(async (tx) => {
      const order = await lockOrder(tx, id);
      return order === null ? null : work(tx, order);
    });
  } catch (error) {
    const isLockTimeout = codeOf(error) === '55P03';
    throw isLockTimeout ? orderBusy() : error;
  }
}

/** Locks in the order that `lockLanes` describes; the last statement reads what earlier lock holders wrote. */
async function lockOrder(tx: Queryable, id: bigint): Promise<LockedOrder | null> {
  await tx.query(sql`SET LOCAL lock_timeout = '500ms'`);
  const [row] = await tx.query<{
    idempotency_key: string;
    destination: string;
    ordering_key: string | null;
  }>(sql`
    SELECT idempotency_key, destination, ordering_key FROM outbox.outbox_orders WHERE id = ${id}`);
  if (row === undefined) return null;
  const lanes = laneOf({ destination: row.destination, orderingKey: row.ordering_key });
  await lockLanes(tx, lanes);
  await lockLedger(tx, [row.idempotency_key]);
  const [order] = await tx.query<Omit<LockedOrder, 'lanes'>>(sql`
    SELECT t.id, t.status, t.resolution, t.in_doubt, ${hasSucceeded(sql`t.idempotency_key`)} AS has_succeeded,
           t.retry_count, t.idempotency_key, t.destination, t.trace_id, t.ordering_seq
    FROM outbox.outbox_orders t WHERE t.id = ${id} FOR UPDATE`);
  return order === undefined ? null : { ...order, lanes };
}

/** Writes the resolution to the order, the ledger, the order's history and the audit log. */
export async function writeResolution(
  tx: Queryable,
  order: LockedOrder,
  by: Readonly<{
    action: Action;
    actor: string;
    reason: string | null;
    act: Act;
    ledgerTtlMs: number;
    /** The corrected order. */
    supersededBy?: bigint;
  }>,
): Promise<void> {
  const resolution = resolutionOf[by.action];
  const reason = by.reason === null ? null : cleanText(by.reason, 1000);
  const lastError = by.action === 'cancel' ? errorText('CANCELLED', reason ?? `by ${by.actor}`) : null;
  await tx.query(sql`
    UPDATE outbox.outbox_orders
    SET status = 'dead', resolution = ${resolution}, last_error = COALESCE(${lastError}, last_error),
        fingerprint = CASE WHEN ${lastError}::text IS NULL THEN fingerprint END, held = false, updated_at = clock_timestamp()
    WHERE id = ${order.id}`);
  await tx.query(sql`
    UPDATE outbox.idempo_ledger
    SET status = 'failed', expires_at = clock_timestamp() + ${by.ledgerTtlMs} * interval '1 millisecond',
        updated_at = clock_timestamp()
    WHERE idempotency_key = ${order.idempotency_key}`);
  await tx.query(sql`
    INSERT INTO outbox.outbox_audit
      (outbox_id, status_from, status_to, retry_count, last_error, idempotency_key, trace_id, actor, reason)
    VALUES (${order.id}, ${order.status}, 'dead', ${order.retry_count}, ${lastError}, ${order.idempotency_key},
            ${order.trace_id}, ${by.actor}, ${reason === null ? resolution : `${resolution}: ${reason}`})`);
  const { supersededBy } = by;
  await recordAct(tx, by.act, {
    resource: `outbox/orders/${order.id}`,
    names: { destinations: [order.destination] },
    detail: {
      event: by.action,
      from: order.status,
      to: 'dead',
      ...(supersededBy === undefined ? {} : { superseded_by_id: String(supersededBy) }),
    },
  });
}
