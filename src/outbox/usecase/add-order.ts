import { AppError } from '../../kernel/errors.ts';
import { requestDigest } from '../domain/request-digest.ts';
import type { AddOutcome, Destination, NewOrder, OrderStore } from './ports.ts';
import type { OrderReader } from './reading-ports.ts';

/** A destination as far as accepting orders for it goes. */
export type OfferedDestination = Pick<Destination, 'name' | 'isInternal' | 'flawsOf'>;

export type AddDeps = Readonly<{
  store: Pick<OrderStore, 'add'>;
  reader: Pick<OrderReader, 'replay'>;
  destinations: ReadonlyMap<string, OfferedDestination>;
}>;

/** What a caller asks for, of the right shape; nothing else is known of it. */
export type AskedOrder = Readonly<{
  idempotencyKey: string;
  request: Readonly<Record<string, unknown>>;
  traceId: string | null;
  traceparent: string | null;
}>;

export type AskedPlace = Readonly<{ destination: string | null; orderingKey: string | null }>;

/** Stored now or before; the answer is the one that the first asker got, word for word. */
export type Accepted = Readonly<{ outcome: 'created' | 'replayed'; id: bigint; answer: string }>;

/**
 * Takes an order. What was accepted once stays accepted: the same key and the same request get the first answer
 * again, even where the destination has since been given a stricter schema or is gone.
 */
export async function addOrder(
  deps: AddDeps,
  asked: AskedOrder & AskedPlace,
  actor: string,
): Promise<Accepted> {
  const destination = asked.destination ?? onlyDestination(deps.destinations);
  const order = newOrder(asked, { destination, orderingKey: asked.orderingKey });
  const objection = objectionTo(deps.destinations, destination, asked.request);
  if (objection !== null) {
    const known = await deps.reader.replay(order.idempotencyKey, order.digest);
    if (known === null) throw objection;
    return { outcome: 'replayed', ...known };
  }
  return accepted(await deps.store.add(order, actor), order.idempotencyKey);
}

function onlyDestination(destinations: AddDeps['destinations']): string {
  const names = postable(destinations);
  const [only] = names;
  if (only !== undefined && names.length === 1) return only;
  throw wrongDestination('required', `destination is required: ${offer(names)}`);
}

/** Why this process would not take such an order for the destination; null where it would. */
function objectionTo(
  destinations: AddDeps['destinations'],
  name: string,
  request: AskedOrder['request'],
): AppError | null {
  const destination = destinations.get(name);
  if (destination === undefined || destination.isInternal)
    return wrongDestination('unknown', `no such destination: ${offer(postable(destinations))}`);
  return schemaViolation(destination, request);
}

/** Null where the request is as the destination's schema wants it. */
export function schemaViolation(
  { name, flawsOf }: OfferedDestination,
  request: AskedOrder['request'],
): AppError | null {
  const flaws = flawsOf(request);
  if (flaws.length === 0) return null;
  const said = flaws.slice(0, 3).map(({ field, message }) => `${field} ${message}`);
  const more = flaws.length > said.length ? `; and ${flaws.length - said.length} more` : '';
  const message = `the request is not as ${name} takes it: ${said.join('; ')}${more}`;
  return new AppError('SYS_OUTBOX_SCHEMA_VIOLATION', 'semantic', message, { details: flaws });
}

export function newOrder(
  { idempotencyKey, request, traceId, traceparent }: AskedOrder,
  { destination, orderingKey }: Readonly<{ destination: string; orderingKey: string | null }>,
): NewOrder {
  return {
    idempotencyKey,
    destination,
    orderingKey,
    // Its numbers were found to be what a double is, so nothing is lost by writing them anew.
    request: JSON.stringify(request),
    digest: requestDigest({ destination, orderingKey, request }),
    traceId: traceId ?? traceIdIn(request),
    traceparent,
  };
}

const longestTraceId = 255;

/** The request's own, where it has one that is fit to be one. */
function traceIdIn({ trace_id: traceId }: AskedOrder['request']): string | null {
  const isOne = typeof traceId === 'string' && traceId !== '' && traceId.length <= longestTraceId;
  return isOne ? traceId : null;
}

/** What the store has made of it, for whoever asked. */
export function accepted(added: AddOutcome, idempotencyKey: string): Accepted {
  switch (added.outcome) {
    case 'created':
    case 'replayed':
      return { outcome: added.outcome, id: added.id, answer: added.answer };
    case 'mismatch':
      throw keyMismatch(idempotencyKey, added.id);
    case 'busy':
      throw busy();
  }
}

function keyMismatch(idempotencyKey: string, id: bigint): AppError {
  const message = `idempotency key ${idempotencyKey} was used for another request: order id=${id}`;
  return new AppError('SYS_OUTBOX_IDEMPOTENCY_MISMATCH', 'semantic', message, {
    details: [{ field: 'idempotency_key', reason: 'mismatch', message: 'was used for another request' }],
  });
}

/** Nothing was changed. */
export function busy(): AppError {
  const message = 'somebody else is at this order, its key or its ordering key right now; try again';
  return new AppError('SYS_OUTBOX_BUSY', 'conflict', message, { retryAfterMs: 1000 });
}

function postable(destinations: AddDeps['destinations']): readonly string[] {
  return [...destinations.values()].filter(({ isInternal }) => !isInternal).map(({ name }) => name);
}

const offered = 20;

function offer(names: readonly string[]): string {
  if (names.length === 0) return 'none is configured here';
  const more = names.length > offered ? ', …' : '';
  return `it is one of ${names.slice(0, offered).join(', ')}${more}`;
}

function wrongDestination(reason: string, message: string): AppError {
  return new AppError('SYS_OUTBOX_VALIDATION_ERROR', 'validation', message, {
    details: [{ field: 'destination', reason, message }],
  });
}
