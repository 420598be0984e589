import { AppError } from '../../kernel/errors.ts';
import { attemptsOf, type AttemptSummary, type AuditEntry } from '../domain/attempts.ts';
import { isIdempotencyKey } from '../domain/idempotency-key.ts';
import type { LedgerEntry, Order, OrderReader } from './reading-ports.ts';

/** An order with its story. */
export type ToldOrder = Readonly<{
  order: Order;
  attempts: readonly AttemptSummary[];
  audit: readonly AuditEntry[];
}>;

/** One use of a key: what the ledger says, and the order that it was for. */
export type Proof = Readonly<{ entry: LedgerEntry; told: ToldOrder | null }>;

type FindReader = Pick<OrderReader, 'find' | 'audit'>;
type ProofReader = FindReader & Pick<OrderReader, 'uses'>;

export function orderNotFound(id: bigint): AppError {
  return new AppError('SYS_OUTBOX_NOT_FOUND', 'not_found', `outbox order not found: ${id}`);
}

const largestId = 9_223_372_036_854_775_807n;

/** An id from outside: refused before it reaches the database, which could not hold it. */
export function parseOrderId(text: string): bigint {
  const id = /^[1-9]\d{0,18}$/.test(text) ? BigInt(text) : null;
  if (id !== null && id <= largestId) return id;
  const message = `invalid order id: ${text.slice(0, 100).toWellFormed()}`;
  throw new AppError('SYS_OUTBOX_VALIDATION_ERROR', 'validation', message, {
    details: [{ field: 'id', reason: 'format', message: 'must be a positive integer' }],
  });
}

/** Archived or not. */
export async function getOrder(reader: FindReader, id: bigint): Promise<ToldOrder> {
  const order = await reader.find(id);
  if (order === null) throw orderNotFound(id);
  return tell(reader, order);
}

async function tell(reader: FindReader, order: Order): Promise<ToldOrder> {
  const audit = await reader.audit(order.id);
  return { order, audit, attempts: attemptsOf(audit) };
}

/** The proof of one effect: every use that was made of a key, the newest first; never empty. */
export async function proveEffect(reader: ProofReader, idempotencyKey: string): Promise<readonly Proof[]> {
  if (!isIdempotencyKey(idempotencyKey))
    throw new AppError('SYS_OUTBOX_VALIDATION_ERROR', 'validation', 'invalid idempotency key', {
      details: [{ field: 'key', reason: 'format', message: 'must be 8 to 64 visible ASCII characters' }],
    });
  const uses = await reader.uses(idempotencyKey);
  if (uses.length === 0) {
    const message = `idempotency key not found: ${idempotencyKey}`;
    throw new AppError('SYS_OUTBOX_NOT_FOUND', 'not_found', message);
  }
  const proofs: Proof[] = [];
  for (const entry of uses) {
    const order = await reader.find(entry.orderId);
    proofs.push({ entry, told: order === null ? null : await tell(reader, order) });
  }
  return proofs;
}
