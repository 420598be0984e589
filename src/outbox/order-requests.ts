import type { IncomingHttpHeaders } from 'node:http';
import { AppError } from '../kernel/errors.ts';
import { ID_PATTERN } from './schemas.ts';
import { scopeOfItem } from '../platform/http/access/item-scope.ts';
import type { ItemScope } from '../platform/http/access/route-access.ts';
import { apiRoot, invalidField } from '../platform/http/slice-input.ts';
import type { Queryable } from '../platform/postgres/database.ts';
import { sql } from '../platform/postgres/sql.ts';

export const root = apiRoot('outbox');

const idForm = new RegExp(ID_PATTERN);
const maxId = 9_223_372_036_854_775_807n;

/** Refuses ids that do not fit a PostgreSQL bigint before they reach the database. */
export function parseOrderId(text: string): bigint {
  const id = idForm.test(text) ? BigInt(text) : null;
  if (id !== null && id <= maxId) return id;
  const message = `invalid order id: ${text.slice(0, 100).toWellFormed()}`;
  throw new AppError('SYS_OUTBOX_VALIDATION_ERROR', 'validation', message, {
    details: [{ field: 'id', reason: 'format', message: 'must be a positive integer' }],
  });
}

/**
 * The header must equal the key in the body. If a client sends it twice, Node joins both values with a comma and a
 * space, and no key contains a space.
 */
export function requireSameKey(headers: IncomingHttpHeaders, idempotencyKey: string): void {
  if (headers['idempotency-key'] !== idempotencyKey)
    throw invalidField('outbox', 'idempotency-key', 'mismatch', 'must equal idempotency_key in the body');
}

export function orderNotFound(id: bigint): AppError {
  return new AppError('SYS_OUTBOX_NOT_FOUND', 'not_found', `outbox order not found: ${id}`);
}

/** A role may be narrowed to destinations; the order's destination counts. */
export function orderScope(db: Queryable): ItemScope {
  return scopeOfItem('destinations', {
    param: 'id',
    read: parseOrderId,
    async namesOf(id) {
      const rows = await db.query<{ destination: string }>(sql`
        SELECT destination FROM outbox.outbox_orders WHERE id = ${id}
        UNION ALL
        SELECT destination FROM outbox.outbox_orders_archive WHERE id = ${id}`);
      return rows.length === 0 ? undefined : rows.map(({ destination }) => destination);
    },
    notFound: orderNotFound,
  });
}

/** Another transaction has locked the order, its key or its ordering key; nothing was changed. */
export function orderBusy(): AppError {
  const message = 'the order, its key or its ordering key is locked by another transaction; try again';
  return new AppError('SYS_OUTBOX_BUSY', 'conflict', message, { retryAfterMs: 1000 });
}
