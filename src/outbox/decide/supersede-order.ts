import type { AppError } from '../../kernel/errors.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { schemaViolation, type Destination } from '../destinations.ts';
import { newOrder, type AcceptedOrder, type NewOrder, type OrderInput } from '../domain/new-order.ts';
import type { Order } from '../domain/order-details.ts';
import { orderNotFound, type OrderCaller } from '../order-requests.ts';
import { withLockedOrder, writeResolution } from './locked-order.ts';
import { conflict, notLive, refuse, type OrderAction, type ResolveDeps } from './resolve-order.ts';

export type SupersedeDeps = ResolveDeps &
  Readonly<{
    destinations: ReadonlyMap<string, Pick<Destination, 'name' | 'isInternal' | 'flawsOf'>>;
    insertOrder: (
      tx: Queryable,
      order: NewOrder,
      by: OrderCaller & Readonly<{ supersedes: Readonly<{ id: bigint; orderingSeq: bigint | null }> }>,
    ) => Promise<AcceptedOrder>;
    /** The answer that was given to the same key and request before. */
    findReplay: (order: NewOrder, caller: OrderCaller) => Promise<AcceptedOrder | null>;
  }>;

/** With whom the corrected order is added. */
export type SupersedeAction = OrderAction & Readonly<{ caller: OrderCaller }>;

/**
 * Replaces a dead order by a corrected one with the same destination and the same place among the orders of its
 * ordering key. A repeated call adds nothing and returns the first answer, even if the destination now has a stricter
 * schema.
 */
export async function supersedeOrder(
  deps: SupersedeDeps,
  action: SupersedeAction,
  corrected: OrderInput,
): Promise<AcceptedOrder> {
  const old = await deps.findOrder(action.id);
  if (old === null) throw orderNotFound(action.id);
  const order = newOrder(corrected, old);
  const objection = objectionTo(deps, old, corrected);
  if (objection !== null) {
    const replay = await deps.findReplay(order, action.caller);
    if (replay === null || !(await supersedes(deps, replay.id, old.id))) throw objection;
    return replay;
  }
  const added = await replaceOrder(deps, action, order);
  if (added.outcome === 'replayed' && !(await supersedes(deps, added.id, old.id)))
    throw conflict('supersede', `the new key belongs to order id=${added.id}, which does not supersede it`);
  return added;
}

/** One transaction: no other order of the key can get in between. */
async function replaceOrder(
  deps: SupersedeDeps,
  action: SupersedeAction,
  corrected: NewOrder,
): Promise<AcceptedOrder> {
  const added = await withLockedOrder(deps.db, action.id, async (tx, order) => {
    const refusal = refuse('supersede', order, action);
    if (refusal !== null && !(await isSupersededBy(tx, order.id, corrected.idempotencyKey))) throw refusal;
    const supersedes = { id: order.id, orderingSeq: order.ordering_seq };
    const accepted = await deps.insertOrder(tx, corrected, { ...action.caller, supersedes });
    if (accepted.outcome === 'created')
      await writeResolution(tx, order, {
        ...action,
        action: 'supersede',
        ledgerTtlMs: deps.ledgerTtlMs,
        supersededBy: accepted.id,
      });
    return accepted;
  });
  if (added === null) throw await notLive(deps, 'supersede', action.id);
  return added;
}

/** A repeated call, whose first answer was lost. */
async function isSupersededBy(tx: Queryable, id: bigint, idempotencyKey: string): Promise<boolean> {
  const rows = await tx.query(sql`
    SELECT 1 FROM outbox.outbox_orders WHERE supersedes_id = ${id} AND idempotency_key = ${idempotencyKey}`);
  return rows.length > 0;
}

async function supersedes({ findOrder }: SupersedeDeps, id: bigint, oldId: bigint): Promise<boolean> {
  return (await findOrder(id))?.supersedesId === oldId;
}

function objectionTo({ destinations }: SupersedeDeps, old: Order, { request }: OrderInput): AppError | null {
  const destination = destinations.get(old.destination);
  if (destination === undefined)
    return conflict('supersede', `destination=${old.destination} is not configured in this process`);
  if (destination.isInternal)
    return conflict('supersede', `destination=${old.destination} is internal and accepts no other orders`);
  return schemaViolation(destination, request);
}
