import { AppError } from '../../kernel/errors.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { schemaViolation, type Destination } from '../destinations.ts';
import { newOrder, type AcceptedOrder, type OrderInput } from '../domain/new-order.ts';
import type { OrderCaller } from '../order-requests.ts';
import { findReplay, insertOrder } from './insert-order.ts';

type Destinations = ReadonlyMap<string, Pick<Destination, 'name' | 'isInternal' | 'flawsOf'>>;

export type AcceptDeps = Readonly<{ db: Queryable; destinations: Destinations }>;

/** The destination may be left out if only one is configured. */
export type OrderTarget = Readonly<{ destination: string | null; orderingKey: string | null }>;

/**
 * Accepts an order. Once accepted it stays accepted: the same key with the same request gets the first answer again,
 * even if the destination now has a stricter schema or is no longer configured.
 */
export async function addOrder(
  { db, destinations }: AcceptDeps,
  input: OrderInput & OrderTarget,
  caller: OrderCaller,
): Promise<AcceptedOrder> {
  const destination = input.destination ?? onlyDestination(destinations);
  const order = newOrder(input, { destination, orderingKey: input.orderingKey });
  const objection = objectionTo(destinations, destination, input.request);
  if (objection === null) return insertOrder(db, order, caller);
  const replay = await findReplay(db, order, caller);
  if (replay === null) throw objection;
  return replay;
}

function onlyDestination(destinations: Destinations): string {
  const names = postable(destinations);
  const [only] = names;
  if (only !== undefined && names.length === 1) return only;
  throw wrongDestination('required', `destination is required; ${listed(names)}`);
}

/** Why this process refuses such an order; null if it accepts it. */
function objectionTo(destinations: Destinations, name: string, request: unknown): AppError | null {
  const destination = destinations.get(name);
  if (destination === undefined || destination.isInternal)
    return wrongDestination('unknown', `unknown destination; ${listed(postable(destinations))}`);
  return schemaViolation(destination, request);
}

function postable(destinations: Destinations): readonly string[] {
  return [...destinations.values()].filter(({ isInternal }) => !isInternal).map(({ name }) => name);
}

const maxListed = 20;

function listed(names: readonly string[]): string {
  if (names.length === 0) return 'no destination is configured';
  const more = names.length > maxListed ? ', …' : '';
  return `configured destinations: ${names.slice(0, maxListed).join(', ')}${more}`;
}

function wrongDestination(reason: string, message: string): AppError {
  return new AppError('SYS_OUTBOX_VALIDATION_ERROR', 'validation', message, {
    details: [{ field: 'destination', reason, message }],
  });
}
