import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { creatorOf, isAllowed } from '../kernel/access/principal.ts';
import { AppError } from '../kernel/errors.ts';
import { actorOf } from '../platform/http/actor.ts';
import { scopeOfItem } from '../platform/http/access/item-scope.ts';
import type { ItemScope, RouteAccess } from '../platform/http/access/route-access.ts';
import { apiRoot, invalidField } from '../platform/http/slice-input.ts';
import type { Queryable } from '../platform/postgres/database.ts';
import { sql } from '../platform/postgres/sql.ts';
import { isOrderOf } from './orders-table.ts';
import { ID_PATTERN } from './schemas.ts';

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

/** Programs that add orders see those that they added. */
export const viewOrders = {
  permission: 'outbox:orders:view',
  own: ['outbox:orders:add'],
} as const satisfies RouteAccess;

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
    async isOwn(id, subject) {
      const rows = await db.query(sql`
        SELECT 1 FROM outbox.outbox_orders t WHERE t.id = ${id} AND ${isOrderOf(subject)}
        UNION ALL
        SELECT 1 FROM outbox.outbox_orders_archive t WHERE t.id = ${id} AND ${isOrderOf(subject)}`);
      return rows.length > 0;
    },
    notFound: orderNotFound,
  });
}

/** Who adds an order. */
export type OrderCaller = Readonly<{
  actor: string;
  /** Whose the order is then; null without authentication. */
  createdBy: string | null;
  /** Whether the caller sees the orders of others to this destination. */
  maySee: (destination: string) => boolean;
}>;

export function orderCallerOf(request: FastifyRequest): OrderCaller {
  const { principal } = request;
  return {
    actor: actorOf(request),
    createdBy: creatorOf(principal),
    maySee: (destination) => isAllowed(principal, 'outbox:orders:view', { destinations: [destination] }),
  };
}

type Added = Readonly<{ created_by: string | null; destination: string }>;

/**
 * Refuses a key that another principal used first, without the answer that it got, unless the caller sees that order
 * anyway. Of an order that was added in SQL, or without authentication, nobody is known.
 */
export async function requireOwnKey(
  db: Queryable,
  id: bigint,
  { createdBy, maySee }: OrderCaller,
): Promise<void> {
  if (createdBy === null) return;
  const [first] = await db.query<Added>(sql`
    SELECT created_by, destination FROM outbox.outbox_orders WHERE id = ${id}
    UNION ALL
    SELECT created_by, destination FROM outbox.outbox_orders_archive WHERE id = ${id}`);
  const owner = first?.created_by ?? null;
  if (first === undefined || owner === null || owner === createdBy || maySee(first.destination)) return;
  const message = 'another caller has used this idempotency key';
  throw new AppError('SYS_OUTBOX_KEY_TAKEN', 'conflict', message, {
    details: [{ field: 'idempotency_key', reason: 'taken', message: 'is used by another caller' }],
  });
}

/** Another transaction has locked the order, its key or its ordering key; nothing was changed. */
export function orderBusy(): AppError {
  const message = 'the order, its key or its ordering key is locked by another transaction; try again';
  return new AppError('SYS_OUTBOX_BUSY', 'conflict', message, { retryAfterMs: 1000 });
}
