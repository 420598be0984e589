import assert from 'node:assert/strict';
import { AppError } from '../../kernel/errors.ts';
import type { Action } from '../domain/order-action.ts';
import {
  accepted,
  busy,
  newOrder,
  schemaViolation,
  type Accepted,
  type AskedOrder,
  type OfferedDestination,
} from './add-order.ts';
import { getOrder, orderNotFound, type ToldOrder } from './find-order.ts';
import type { ActionOutcome, OrderAction, OrderStore } from './ports.ts';
import type { Order, OrderReader } from './reading-ports.ts';

/** What a person decides about an order: call it off, go on without it, or put a corrected one in its place. */
export type ActionDeps = Readonly<{
  store: Pick<OrderStore, 'cancel' | 'skip' | 'supersede'>;
  reader: Pick<OrderReader, 'find' | 'audit' | 'replay'>;
  destinations: ReadonlyMap<string, OfferedDestination>;
}>;

export async function cancelOrder(deps: ActionDeps, action: OrderAction): Promise<ToldOrder> {
  return actAndTell(deps, 'cancel', action);
}

export async function skipOrder(deps: ActionDeps, action: OrderAction): Promise<ToldOrder> {
  return actAndTell(deps, 'skip', action);
}

async function actAndTell(
  deps: ActionDeps,
  what: 'cancel' | 'skip',
  action: OrderAction,
): Promise<ToldOrder> {
  const done = await deps.store[what](action);
  if (done.outcome !== 'done') throw await refusal(deps, what, action.id, done);
  return getOrder(deps.reader, action.id);
}

/**
 * The corrected order goes where the old one went, in its place among those of its ordering key. Asked for twice,
 * it is added once: the second time the first answer comes again.
 */
export async function supersedeOrder(
  deps: ActionDeps,
  action: OrderAction,
  corrected: AskedOrder,
): Promise<Accepted> {
  const old = await deps.reader.find(action.id);
  if (old === null) throw orderNotFound(action.id);
  const order = newOrder(corrected, old);
  const objection = objectionTo(deps, old, corrected);
  if (objection !== null) {
    const known = await deps.reader.replay(order.idempotencyKey, order.digest);
    if (known === null || !(await supersedes(deps, known.id, old.id))) throw objection;
    return { outcome: 'replayed', ...known };
  }
  const done = await deps.store.supersede(action, order);
  assert.ok(done.outcome !== 'done', 'what supersedes has been added');
  if (done.outcome !== 'added') throw await refusal(deps, 'supersede', action.id, done);
  const added = accepted(done.added, order.idempotencyKey);
  if (added.outcome === 'replayed' && !(await supersedes(deps, added.id, old.id)))
    throw conflict('supersede', `its new key belongs to order id=${added.id}, which is not for it`);
  return added;
}

async function supersedes({ reader }: ActionDeps, id: bigint, oldId: bigint): Promise<boolean> {
  return (await reader.find(id))?.supersedesId === oldId;
}

function objectionTo({ destinations }: ActionDeps, old: Order, { request }: AskedOrder): AppError | null {
  const destination = destinations.get(old.destination);
  if (destination === undefined)
    return conflict('supersede', `destination=${old.destination} is not configured here`);
  if (destination.isInternal)
    return conflict('supersede', `destination=${old.destination} takes only orders of the system itself`);
  return schemaViolation(destination, request);
}

const participle: Readonly<Record<Action, string>> = {
  cancel: 'cancelled',
  skip: 'skipped',
  supersede: 'superseded',
};

function conflict(action: Action, why: string): AppError {
  return new AppError('SYS_OUTBOX_CONFLICT', 'conflict', `order cannot be ${participle[action]}: ${why}`);
}

type Refused = Exclude<ActionOutcome, { outcome: 'done' }>;

async function refusal(
  { reader }: ActionDeps,
  action: Action,
  id: bigint,
  refused: Refused,
): Promise<AppError> {
  switch (refused.outcome) {
    case 'wrong_status':
      return conflict(action, stateText(refused));
    case 'not_found': {
      const order = await reader.find(id);
      return order === null ? orderNotFound(id) : conflict(action, `it is archived, ${stateText(order)}`);
    }
    case 'already_sent': {
      const message = `order cannot be ${participle[action]}: its effect has happened, id=${id}`;
      return new AppError('SYS_OUTBOX_ALREADY_SENT', 'conflict', message);
    }
    case 'effect_unchecked': {
      const message =
        `order cannot be ${participle[action]} yet: an attempt may have had its effect, id=${id}; look at the ` +
        'destination for its idempotency key, and when the effect is not there or is dealt with, ' +
        'send "effect_checked": true';
      return new AppError('SYS_OUTBOX_EFFECT_UNCHECKED', 'conflict', message, {
        details: [{ field: 'effect_checked', reason: 'required', message: 'must be true' }],
      });
    }
    case 'busy':
      return busy();
  }
}

function stateText({ status, resolution }: Pick<Order, 'status' | 'resolution'>): string {
  return `status=${status}, resolution=${resolution ?? 'none'}`;
}
