import { parseExactJson } from '../kernel/exact-json.ts';
import { findUnsafeInput } from '../kernel/unsafe-input.ts';
import { isIdempotencyKey, MAX_KEY_LENGTH, MIN_KEY_LENGTH } from '../outbox/domain/idempotency-key.ts';
import { isDestinationName } from '../outbox/domain/destination-name.ts';
import type { NewOrder as StorableOrder } from '../outbox/domain/new-order.ts';
import { requestDigest } from '../outbox/domain/request-digest.ts';
import { sql, type Sql } from '../platform/postgres/sql.ts';
import { traceparentOf } from './traceparent.ts';
import { askClient, requireClient, type Transaction } from './transaction.ts';
import { writeJson } from './write-json.ts';

export type NewOrder = Readonly<{
  /** A name under `outbox.destinations` in the server's configuration. */
  destination: string;
  /** Identifies the order: 8 to 64 visible ASCII characters. The same key never has a second effect. */
  idempotencyKey: string;
  /** What is sent. Stored as JSON.stringify serialises it. */
  request: object;
  /** Orders with the same ordering key are sent one after another, in order of commit. */
  orderingKey?: string | undefined;
  /** Stored in the audit log; defaults to the request's own `trace_id`. */
  traceId?: string | undefined;
  /** Parent of the send in a trace; defaults to the active OpenTelemetry span. */
  traceparent?: string | undefined;
}>;

/**
 * The transaction can continue in every case. `created`: sent once the transaction commits. `replayed`: the same order
 * was added before. `mismatch`: the key belongs to another order, whose id this is. `refused`: the order is invalid.
 * `busy`: another open transaction holds the key or the ordering key; try again after it has ended.
 */
// One type per outcome: TypeScript does not narrow a type whose outcome is itself a union.
export type AddedOrder =
  | Readonly<{ outcome: 'created'; id: bigint }>
  | Readonly<{ outcome: 'replayed'; id: bigint }>
  | Readonly<{ outcome: 'mismatch'; id: bigint; reason: string }>
  | Readonly<{ outcome: 'refused'; id: null; reason: string }>
  | Readonly<{ outcome: 'busy'; id: null; reason: string }>;

/** In code points, as in `outbox.add_order`. Both together fit into one index entry. */
const MAX_DESTINATION_LENGTH = 100;
const MAX_NAME_LENGTH = 255;
/** As in `outbox.add_order`: a dispatcher has a batch of requests in memory. */
const MAX_REQUEST_BYTES = 1024 * 1024;

export const outbox = { add } as const;

/**
 * Adds an order in the caller's transaction: it is sent after the commit, and a rollback removes it. Throws if the
 * database or the client throws, and if `tx` is not a supported client.
 */
async function add(tx: Transaction, order: NewOrder): Promise<AddedOrder> {
  requireClient('outbox.add(tx, order)', tx);
  const checked = checkOrder(order);
  if ('reason' in checked) return { outcome: 'refused', id: null, reason: checked.reason };
  const [row] = await askClient(tx, insertOrder(checked), { call: 'outbox.add', slice: 'outbox' });
  return readOutcome(row as AddedRow);
}

type Refusal = Readonly<{ reason: string }>;

function insertOrder(order: StorableOrder): Sql {
  // The id as text: a service may have configured pg to read bigints as numbers.
  return sql`
    SELECT id::text AS id, outcome
    FROM outbox.insert_order(
      p_idempotency_key => ${order.idempotencyKey}::text, p_destination => ${order.destination}::text,
      p_request => ${order.request}::jsonb, p_digest => ${order.digest}::text,
      p_ordering_key => ${order.orderingKey}::text, p_trace_id => ${order.traceId}::text,
      p_traceparent => ${order.traceparent}::text, p_actor => session_user::text)`;
}

type AddedRow = Readonly<{ id: string; outcome: 'created' | 'replayed' | 'mismatch' | 'busy' }>;

function readOutcome(row: AddedRow): AddedOrder {
  switch (row.outcome) {
    case 'created':
    case 'replayed':
      return { outcome: row.outcome, id: BigInt(row.id) };
    case 'mismatch':
      return { outcome: 'mismatch', id: BigInt(row.id), reason: 'the key belongs to another order' };
    case 'busy':
      return { outcome: 'busy', id: null, reason: 'another transaction holds the key or the ordering key' };
  }
}

/** Finds everything that would make the statement fail, because that would abort the caller's transaction. */
function checkOrder(order: NewOrder): StorableOrder | Refusal {
  const { destination, idempotencyKey, orderingKey = null, traceId = null } = order;
  if (typeof idempotencyKey !== 'string' || !isIdempotencyKey(idempotencyKey))
    return refuse(`idempotencyKey is not ${MIN_KEY_LENGTH} to ${MAX_KEY_LENGTH} visible ASCII characters`);
  const flaw =
    flawOfName('destination', destination, MAX_DESTINATION_LENGTH) ??
    (orderingKey === null ? null : flawOfName('orderingKey', orderingKey)) ??
    (traceId === null ? null : flawOfName('traceId', traceId));
  if (flaw !== null) return refuse(flaw);
  if (destination.startsWith('_')) return refuse('destination is reserved for the system: it begins with _');
  if (!isDestinationName(destination))
    return refuse(
      'destination is not a valid name: 1 to 100 characters of a-z, 0-9, _, . and -, beginning with a letter',
    );
  const written = writeRequest(order.request);
  if ('reason' in written) return written;
  return {
    idempotencyKey,
    destination,
    request: written.text,
    digest: requestDigest({ destination, orderingKey, request: written.value }),
    orderingKey,
    traceId: traceId ?? traceIdIn(written.value),
    traceparent: traceparentOf(order.traceparent),
  };
}

function refuse(reason: string): Refusal {
  return { reason };
}

function flawOfName(field: string, value: unknown, maxLength = MAX_NAME_LENGTH): string | null {
  if (typeof value !== 'string' || value === '') return `${field} must be a non-empty string`;
  if (Array.from(value.slice(0, 2 * maxLength + 1)).length > maxLength)
    return `${field} is longer than ${maxLength} characters`;
  const unsafe = findUnsafeInput(value, field);
  return unsafe === null ? null : `${field} ${unsafe.message}`;
}

function traceIdIn({ trace_id: own }: Readonly<Record<string, unknown>>): string | null {
  return typeof own === 'string' && flawOfName('trace_id', own) === null ? own : null;
}

type WrittenRequest = Readonly<{ text: string; value: Readonly<Record<string, unknown>> }>;

/** The request as JSON text and parsed again, or why it cannot be stored as the service meant it. */
function writeRequest(request: unknown): WrittenRequest | Refusal {
  if (request === undefined) return refuse('request is not an object');
  const written = writeJson('request', request);
  if ('reason' in written) return written;
  const { text } = written;
  if (!text.startsWith('{')) return refuse('request is not an object');
  if (Buffer.byteLength(text) > MAX_REQUEST_BYTES)
    return refuse(`request is larger than ${MAX_REQUEST_BYTES} bytes of JSON`);
  const read = parseExactJson(text, 'request');
  if (!read.ok) return refuse(`request: ${read.flaw.field} ${read.flaw.message}`);
  return { text, value: read.value as WrittenRequest['value'] };
}
