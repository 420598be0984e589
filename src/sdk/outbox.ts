import { types } from 'node:util';
import { isSpanContextValid, trace } from '@opentelemetry/api';
import { AppError, codeOf, messageOf } from '../kernel/errors.ts';
import { parseExactJson } from '../kernel/exact-json.ts';
import { findUnsafeInput } from '../kernel/unsafe-input.ts';
import { isIdempotencyKey, MAX_KEY_LENGTH, MIN_KEY_LENGTH } from '../outbox/domain/idempotency-key.ts';
import { requestDigest } from '../outbox/domain/request-digest.ts';
import { sql, type Sql } from '../platform/postgres/sql.ts';
import { readTraceContext } from '../platform/telemetry/trace-context.ts';

/** A client in an open transaction: a `Client` or `PoolClient` of pg, or whatever passes its queries on to one. */
export type Transaction = Readonly<{
  query(text: string, values: unknown[]): Promise<Readonly<{ rows: readonly unknown[] }>>;
}>;

export type NewOrder = Readonly<{
  /** Where it goes: a name under `outbox.destinations` of the server's configuration. */
  destination: string;
  /** Names the order for good: 8 to 64 visible ASCII characters. The same key never has a second effect. */
  idempotencyKey: string;
  /** What is sent. Stored is what JSON.stringify makes of it. */
  request: object;
  /** Orders of one such key reach their destination one after another, in the order of their commits. */
  orderingKey?: string | undefined;
  /** Carried through to the audit; by default the request's own `trace_id`. */
  traceId?: string | undefined;
  /** Where the send belongs in a trace; by default below the active OpenTelemetry span. */
  traceparent?: string | undefined;
}>;

/**
 * What came of it; the transaction goes on in every case. `created`: it is sent once the transaction commits.
 * `replayed`: the same order is there already. `mismatch`: the key belongs to another order, whose id this is.
 * `refused`: it can never be stored like this. `busy`: another open transaction holds its key or its ordering
 * key, so try again once that has ended.
 */
export type AddedOrder =
  | Readonly<{ outcome: 'created' | 'replayed'; id: bigint }>
  | Readonly<{ outcome: 'mismatch'; id: bigint; reason: string }>
  | Readonly<{ outcome: 'refused' | 'busy'; id: null; reason: string }>;

/** In code points, as for `outbox.add_order`. Both together still fit into one entry of an index. */
const MAX_DESTINATION_LENGTH = 100;
const MAX_NAME_LENGTH = 255;
/** As `outbox.add_order` has it: a batch of orders is in memory at once. */
const MAX_REQUEST_BYTES = 1024 * 1024;
/** No such schema, function or table. */
const missing: ReadonlySet<string> = new Set(['3F000', '42883', '42P01']);

export const outbox = { add } as const;

/**
 * Adds an order in the caller's transaction: with its commit the order will be sent, with its rollback it never
 * existed. Throws where the database or the client does, and for something that is no such client.
 */
async function add(tx: Transaction, order: NewOrder): Promise<AddedOrder> {
  requireClient(tx);
  const checked = checkOrder(order);
  if ('reason' in checked) return { outcome: 'refused', id: null, reason: checked.reason };
  const { text, values } = insertOrder(checked);
  try {
    return readOutcome(await tx.query(text, [...values]));
  } catch (error) {
    throw missing.has(codeOf(error) ?? '') ? notMigrated(error) : error;
  }
}

/** What the statement needs, all of it storable. */
type StorableOrder = Readonly<{
  idempotencyKey: string;
  destination: string;
  request: string;
  digest: string;
  orderingKey: string | null;
  traceId: string | null;
  traceparent: string | null;
}>;

type Refusal = Readonly<{ reason: string }>;

function insertOrder(order: StorableOrder): Sql {
  // The id as text: a service may have told its pg to read bigints as numbers.
  return sql`
    SELECT id::text AS id, outcome
    FROM outbox.insert_order(
      p_idempotency_key => ${order.idempotencyKey}::text, p_destination => ${order.destination}::text,
      p_request => ${order.request}::jsonb, p_digest => ${order.digest}::text,
      p_ordering_key => ${order.orderingKey}::text, p_trace_id => ${order.traceId}::text,
      p_traceparent => ${order.traceparent}::text, p_actor => session_user::text)`;
}

function readOutcome(result: Readonly<{ rows: readonly unknown[] }>): AddedOrder {
  const row = (result as Partial<typeof result> | undefined)?.rows?.[0] as
    | Readonly<{ id: string; outcome: 'created' | 'replayed' | 'mismatch' | 'busy' }>
    | undefined;
  if (row === undefined)
    throw new TypeError('outbox.add: query(text, values) of the given client did not answer with { rows }');
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

function notMigrated(cause: unknown): AppError {
  return new AppError(
    'SYS_PLATFORM_SCHEMA_OUTDATED',
    'internal',
    'the database has no outbox yet: apply the migrations with `redrive migrate up`',
    { cause },
  );
}

/** A pool has `query` too, but runs it on any of its connections: the order would outlive a rollback. */
function requireClient(tx: unknown): void {
  const client = tx as Readonly<{ query?: unknown; totalCount?: unknown; idleCount?: unknown }> | null;
  if (typeof client?.query !== 'function')
    throw new TypeError(
      'outbox.add(tx, order): tx is no client with query(text, values), such as a Client or PoolClient of pg',
    );
  if (typeof client.totalCount === 'number' && typeof client.idleCount === 'number')
    throw new TypeError(
      'outbox.add(tx, order): tx is a pool, which would add the order outside of your transaction; pass the client that `await pool.connect()` gave',
    );
}

/** Everything that would make the statement fail, and with it the caller's transaction, is found before. */
function checkOrder(order: NewOrder): StorableOrder | Refusal {
  const { destination, idempotencyKey, orderingKey = null, traceId = null } = order;
  if (typeof idempotencyKey !== 'string' || !isIdempotencyKey(idempotencyKey))
    return refuse(`idempotencyKey is not ${MIN_KEY_LENGTH} to ${MAX_KEY_LENGTH} visible ASCII characters`);
  const flaw =
    flawOfName('destination', destination, MAX_DESTINATION_LENGTH) ??
    (orderingKey === null ? null : flawOfName('orderingKey', orderingKey)) ??
    (traceId === null ? null : flawOfName('traceId', traceId));
  if (flaw !== null) return refuse(flaw);
  if (destination.startsWith('_')) return refuse('destination is one of the system itself: it begins with _');
  const written = writeRequest(order.request);
  if ('reason' in written) return written;
  return {
    idempotencyKey,
    destination,
    request: written.text,
    digest: requestDigest({ destination, orderingKey, request: written.value }),
    orderingKey,
    traceId: traceId ?? traceIdIn(written.value),
    traceparent: traceparentOf(order),
  };
}

function refuse(reason: string): Refusal {
  return { reason };
}

function flawOfName(field: string, value: unknown, maxLength = MAX_NAME_LENGTH): string | null {
  if (typeof value !== 'string' || value === '') return `${field} is not a text, or empty`;
  if (Array.from(value.slice(0, 2 * maxLength + 1)).length > maxLength)
    return `${field} is longer than ${maxLength} characters`;
  const unsafe = findUnsafeInput(value, field);
  return unsafe === null ? null : `${field} ${unsafe.message}`;
}

function traceIdIn({ trace_id: own }: Readonly<Record<string, unknown>>): string | null {
  return typeof own === 'string' && flawOfName('trace_id', own) === null ? own : null;
}

type WrittenRequest = Readonly<{ text: string; value: Readonly<Record<string, unknown>> }>;

/** The request as JSON text and as what that text says, or why that would not be what the service meant. */
function writeRequest(request: unknown): WrittenRequest | Refusal {
  let text: string | undefined;
  try {
    text = JSON.stringify(request, refuseLoss) as string | undefined;
  } catch (error) {
    return refuse(`request ${error instanceof Loss ? '' : 'has no JSON form: '}${messageOf(error)}`);
  }
  if (text?.startsWith('{') !== true) return refuse('request is not an object');
  if (Buffer.byteLength(text) > MAX_REQUEST_BYTES)
    return refuse(`request is larger than ${MAX_REQUEST_BYTES} bytes of JSON`);
  const read = parseExactJson(text, 'request');
  if (!read.ok) return refuse(`request: ${read.flaw.field} ${read.flaw.message}`);
  return { text, value: read.value as WrittenRequest['value'] };
}

/** Something that JSON would drop or turn into null without a word. */
class Loss extends Error {}

/** Called for every value as it is written, so that what was checked is what is stored. */
function refuseLoss(this: unknown, name: string, value: unknown): unknown {
  const plain = types.isBoxedPrimitive(value) ? value.valueOf() : value;
  const kind = kindWithoutJson(this as Readonly<Record<string, unknown>>, name, plain);
  if (kind !== null) throw new Loss(`holds ${kind} at ${JSON.stringify(name)}, which JSON cannot`);
  return plain;
}

function kindWithoutJson(
  holder: Readonly<Record<string, unknown>>,
  name: string,
  value: unknown,
): string | null {
  if (typeof value === 'number') return Number.isFinite(value) ? null : String(value);
  if (typeof value === 'bigint' || typeof value === 'function' || typeof value === 'symbol')
    return `a ${typeof value}`;
  if (value === undefined) return Array.isArray(holder) ? 'undefined' : null;
  if (value === null) return types.isDate(holder[name]) ? 'an invalid date' : null;
  if (typeof value !== 'object') return null;
  return emptyKinds.find(([, isOne]) => isOne(value))?.[0] ?? null;
}

/** Objects with contents that JSON.stringify writes as `{}`. */
const emptyKinds: readonly (readonly [name: string, isOne: (value: object) => boolean])[] = [
  ['a Map', types.isMap],
  ['a Set', types.isSet],
  ['a Promise', types.isPromise],
  ['a RegExp', types.isRegExp],
  ['an Error', types.isNativeError],
  ['an ArrayBuffer', types.isAnyArrayBuffer],
];

/** A trace is never worth an order: what is no traceparent is left out. */
function traceparentOf({ traceparent }: NewOrder): string | null {
  if (traceparent !== undefined) return readTraceContext({ traceparent }) === undefined ? null : traceparent;
  const span = trace.getActiveSpan()?.spanContext();
  if (span === undefined || !isSpanContextValid(span)) return null;
  return `00-${span.traceId}-${span.spanId}-${(span.traceFlags & 0xff).toString(16).padStart(2, '0')}`;
}
