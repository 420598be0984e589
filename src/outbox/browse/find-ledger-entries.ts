import type { Visible } from '../../kernel/access/scope.ts';
import { AppError } from '../../kernel/errors.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { isVisible } from '../../platform/postgres/is-named.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { isIdempotencyKey } from '../domain/idempotency-key.ts';
import type { OrderHistory } from '../domain/order-details.ts';
import { isOrderOf } from '../orders-table.ts';
import { addHistory, findOrder } from './find-order.ts';

/** One use of an idempotency key; once it is archived, the key can be used again. */
export type LedgerEntry = Readonly<{
  idempotencyKey: string;
  requestDigest: string;
  resultDigest: string | null;
  status: 'accepted' | 'succeeded' | 'failed';
  outsideId: string | null;
  orderId: bigint;
  /** Null until the order is sent or resolved: until then the entry does not expire. */
  expiresAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
  archivedAt: Date | null;
}>;

/** A ledger entry and its order: the proof of whether the effect has happened. */
export type Proof = Readonly<{ entry: LedgerEntry; details: OrderHistory | null }>;

/** Older uses of a key are not shown. */
const entryLimit = 20;

const ledgerColumns: Sql = sql`
  l.idempotency_key AS "idempotencyKey", l.request_digest AS "requestDigest", l.result_digest AS "resultDigest",
  l.status, l.outside_id AS "outsideId", l.outbox_id AS "orderId", NULLIF(l.expires_at, 'infinity') AS "expiresAt",
  l.created_at AS "createdAt", l.updated_at AS "updatedAt"`;

/** Every use of the key for an order that the caller may see, newest first; never empty. */
export async function findLedgerEntries(
  db: Queryable,
  idempotencyKey: string,
  visible: Visible = { names: null, own: null },
): Promise<readonly LedgerEntry[]> {
  if (!isIdempotencyKey(idempotencyKey))
    throw new AppError('SYS_OUTBOX_VALIDATION_ERROR', 'validation', 'invalid idempotency key', {
      details: [{ field: 'key', reason: 'format', message: 'must be 8 to 64 visible ASCII characters' }],
    });
  const entries = await db.query<LedgerEntry>(sql`
    SELECT ${ledgerColumns}, NULL::timestamptz AS "archivedAt"
    FROM outbox.idempo_ledger l WHERE l.idempotency_key = ${idempotencyKey} AND ${isInScope(visible)}
    UNION ALL
    SELECT ${ledgerColumns}, l.archived_at AS "archivedAt"
    FROM outbox.idempo_ledger_archive l WHERE l.idempotency_key = ${idempotencyKey} AND ${isInScope(visible)}
    ORDER BY "orderId" DESC
    LIMIT ${entryLimit}`);
  if (entries.length > 0) return entries;
  const message = `idempotency key not found: ${idempotencyKey}`;
  throw new AppError('SYS_OUTBOX_NOT_FOUND', 'not_found', message);
}

function isInScope(visible: Visible): Sql {
  if (visible.names === null) return sql`true`;
  const isShown = isVisible(visible, { name: sql`t.destination`, isOf: isOrderOf });
  return sql`(
    EXISTS (SELECT 1 FROM outbox.outbox_orders t WHERE t.id = l.outbox_id AND ${isShown})
    OR EXISTS (SELECT 1 FROM outbox.outbox_orders_archive t WHERE t.id = l.outbox_id AND ${isShown}))`;
}

export async function proofsOf(db: Queryable, entries: readonly LedgerEntry[]): Promise<readonly Proof[]> {
  const proofs: Proof[] = [];
  for (const entry of entries) {
    const order = await findOrder(db, entry.orderId);
    proofs.push({ entry, details: order === null ? null : await addHistory(db, order) });
  }
  return proofs;
}
