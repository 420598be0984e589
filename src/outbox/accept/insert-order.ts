import { AppError } from '../../kernel/errors.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { AcceptedOrder, NewOrder } from '../domain/new-order.ts';
import { orderBusy, requireOwnKey, type OrderCaller } from '../order-requests.ts';

type InsertedRow = Readonly<{ id: bigint | null; outcome: string; answer: string }>;

/**
 * Stores an order, or finds the one that was stored under its key. Throws if the key belongs to another request, or
 * to an order of another principal, or if another transaction holds the key or the ordering key; all leave the
 * database as it was. A corrected order takes the place of the one it supersedes among the orders of its ordering key.
 */
export async function insertOrder(
  db: Queryable,
  order: NewOrder,
  by: OrderCaller & Readonly<{ supersedes?: Readonly<{ id: bigint; orderingSeq: bigint | null }> }>,
): Promise<AcceptedOrder> {
  const [row] = await db.query<InsertedRow>(sql`
    SELECT id, outcome, response_payload::text AS answer
    FROM outbox.insert_order(
      ${order.idempotencyKey}, ${order.destination}, ${order.request}::jsonb, ${order.digest}, ${order.orderingKey},
      ${order.traceId}, ${order.traceparent}, ${by.actor}, ${by.supersedes?.id ?? null},
      ${by.supersedes?.orderingSeq ?? null}, ${by.createdBy})`);
  if (row === undefined || row.id === null) throw orderBusy();
  if (row.outcome !== 'created') await requireOwnKey(db, row.id, by);
  if (row.outcome === 'mismatch') throw keyMismatch(order.idempotencyKey, row.id);
  return { outcome: row.outcome === 'created' ? 'created' : 'replayed', id: row.id, answer: row.answer };
}

/** The first answer to this key, if it was given to the same request, and the caller may have it. */
export async function findReplay(
  db: Queryable,
  { idempotencyKey, digest }: Pick<NewOrder, 'idempotencyKey' | 'digest'>,
  caller: OrderCaller,
): Promise<AcceptedOrder | null> {
  const [row] = await db.query<{ id: bigint; answer: string }>(sql`
    SELECT outbox_id AS id, response_payload::text AS answer FROM outbox.idempo_ledger
    WHERE idempotency_key = ${idempotencyKey} AND request_digest = ${digest}`);
  if (row === undefined) return null;
  await requireOwnKey(db, row.id, caller);
  return { outcome: 'replayed', ...row };
}

function keyMismatch(idempotencyKey: string, id: bigint): AppError {
  const message = `idempotency key ${idempotencyKey} was used for another request: order id=${id}`;
  return new AppError('SYS_OUTBOX_IDEMPOTENCY_MISMATCH', 'semantic', message, {
    details: [{ field: 'idempotency_key', reason: 'mismatch', message: 'was used for another request' }],
  });
}
