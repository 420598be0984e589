import type { Act } from '../../kernel/audit/act.ts';
import { AppError } from '../../kernel/errors.ts';
import type { Database } from '../../platform/postgres/database.ts';
import type { Resolution, Status } from '../domain/order.ts';
import { refusalOf, resolutionOf, type Action, type ActionRefusal } from '../domain/order-action.ts';
import type { Order } from '../domain/order-details.ts';
import { notify } from '../../platform/work/wake.ts';
import { outboxChannel } from '../channel.ts';
import { orderNotFound } from '../order-requests.ts';
import { unblockNext } from '../orders-table.ts';
import { withLockedOrder, writeResolution, type LockedOrder } from './locked-order.ts';

export type ResolveDeps = Readonly<{
  db: Database;
  ledgerTtlMs: number;
  /** Live or archived. */
  findOrder: (id: bigint) => Promise<Order | null>;
}>;

/** What a person does to an order. */
export type OrderAction = Readonly<{
  id: bigint;
  actor: string;
  reason: string | null;
  /** The person has checked the destination: the effect did not happen, or has been dealt with. */
  effectChecked: boolean;
  act: Act;
}>;

/**
 * Cancels a waiting order, or skips a dead one, which unblocks the orders behind it. Throws if the order does not
 * allow it.
 */
export async function resolveOrder(
  deps: ResolveDeps,
  kind: 'cancel' | 'skip',
  action: OrderAction,
): Promise<void> {
  const resolved = await withLockedOrder(deps.db, action.id, async (tx, order) => {
    const refusal = refuse(kind, order, action);
    if (refusal !== null) throw refusal;
    await writeResolution(tx, order, { ...action, action: kind, ledgerTtlMs: deps.ledgerTtlMs });
    await unblockNext(tx, order.lanes);
    for (const { destination } of order.lanes) await notify(tx, outboxChannel(destination));
    return order;
  });
  if (resolved === null) throw await notLive(deps, kind, action.id);
}

/** Why the order does not allow the action; null if it does. */
export function refuse(kind: Action, order: LockedOrder, { effectChecked }: OrderAction): AppError | null {
  const { status, resolution } = order;
  const state = { status, resolution, inDoubt: order.in_doubt, hasSucceeded: order.has_succeeded };
  const refusal = refusalOf(kind, state, effectChecked);
  return refusal === null ? null : refusalError(kind, order, refusal);
}

function refusalError(kind: Action, order: LockedOrder, refusal: ActionRefusal): AppError {
  const refused = `order cannot be ${resolutionOf[kind]}`;
  switch (refusal) {
    case 'wrong_status':
      return conflict(kind, stateText(order));
    case 'already_sent':
      return new AppError(
        'SYS_OUTBOX_ALREADY_SENT',
        'conflict',
        `${refused}: its effect has happened, id=${order.id}`,
      );
    case 'effect_unchecked': {
      const message =
        `${refused} yet: an attempt may have had its effect, id=${order.id}; look up its idempotency key at the ` +
        'destination, and if the effect is missing or dealt with, send "effect_checked": true';
      return new AppError('SYS_OUTBOX_EFFECT_UNCHECKED', 'conflict', message, {
        details: [{ field: 'effect_checked', reason: 'required', message: 'must be true' }],
      });
    }
  }
}

/** The error for an order that is archived or does not exist. */
export async function notLive(
  { findOrder }: Pick<ResolveDeps, 'findOrder'>,
  kind: Action,
  id: bigint,
): Promise<AppError> {
  const order = await findOrder(id);
  return order === null ? orderNotFound(id) : conflict(kind, `it is archived, ${stateText(order)}`);
}

export function conflict(kind: Action, why: string): AppError {
  return new AppError('SYS_OUTBOX_CONFLICT', 'conflict', `order cannot be ${resolutionOf[kind]}: ${why}`);
}

function stateText({
  status,
  resolution,
}: Readonly<{ status: Status; resolution: Resolution | null }>): string {
  return `status=${status}, resolution=${resolution ?? 'none'}`;
}
