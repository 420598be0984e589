import { codeOf } from '../../kernel/errors.ts';
import { cleanText } from '../../kernel/text.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { Resolution, Status } from '../domain/order.ts';
import { errorText } from '../domain/order.ts';
import { refusalOf, resolutionOf, type Action } from '../domain/order-action.ts';
import type { ActionOutcome, AddOutcome, NewOrder, OrderAction, OrderStore } from '../usecase/ports.ts';
import { hasSucceeded, lockLanes, lockLedger, releaseNext, type Lane } from './orders-table.ts';

export function createPostgresOrderStore(
  db: Database,
  { ledgerTtlMs }: Readonly<{ ledgerTtlMs: number }>,
): OrderStore {
  const act = async (action: Action, order: OrderAction): Promise<ActionOutcome> =>
    unlessBusy(() =>
      db.transaction(async (tx) => {
        const found = await lockOrder(tx, order.id);
        if (found === null) return { outcome: 'not_found' };
        const refusal = refuse(action, found, order);
        if (refusal !== null) return refusal;
        await resolve(tx, { action, found, order, ledgerTtlMs });
        await releaseNext(tx, found.lanes);
        return { outcome: 'done' };
      }),
    );

  return {
    add: (order, actor) => insertOrder(db, order, { actor, supersedes: null }),
    cancel: (order) => act('cancel', order),
    skip: (order) => act('skip', order),

    supersede: (order, corrected) =>
      unlessBusy(() =>
        db.transaction(async (tx) => {
          const found = await lockOrder(tx, order.id);
          if (found === null) return { outcome: 'not_found' };
          const refusal = refuse('supersede', found, order);
          if (refusal !== null && !(await isSupersededBy(tx, order.id, corrected.idempotencyKey)))
            return refusal;
          // In the place of the old one, in the transaction that resolves it: nothing can slip in between.
          const supersedes = { id: order.id, orderingSeq: found.ordering_seq };
          const added = await insertOrder(tx, corrected, { actor: order.actor, supersedes });
          if (added.outcome === 'created')
            await resolve(tx, { action: 'supersede', found, order, ledgerTtlMs });
          return { outcome: 'added', added };
        }),
      ),
  };
}

type InsertedRow = Readonly<{ id: bigint | null; outcome: string; http_status: number; answer: string }>;

async function insertOrder(
  db: Queryable,
  order: NewOrder,
  {
    actor,
    supersedes,
  }: Readonly<{ actor: string; supersedes: Readonly<{ id: bigint; orderingSeq: bigint | null }> | null }>,
): Promise<AddOutcome> {
  const [row] = await db.query<InsertedRow>(sql`
    SELECT id, outcome, http_status, response_payload::text AS answer
    FROM outbox.insert_order(
      ${order.idempotencyKey}, ${order.destination}, ${order.request}::jsonb, ${order.digest}, ${order.orderingKey},
      ${order.traceId}, ${order.traceparent}, ${actor}, ${supersedes?.id ?? null}, ${supersedes?.orderingSeq ?? null})`);
  if (row === undefined || row.id === null) return { outcome: 'busy' };
  if (row.outcome === 'mismatch') return { outcome: 'mismatch', id: row.id };
  const outcome = row.outcome === 'created' ? 'created' : 'replayed';
  return { outcome, id: row.id, httpStatus: row.http_status, answer: row.answer };
}

type FoundOrder = Readonly<{
  status: Status;
  resolution: Resolution | null;
  in_doubt: boolean;
  has_succeeded: boolean;
  retry_count: number;
  idempotency_key: string;
  trace_id: string | null;
  ordering_seq: bigint | null;
  lanes: readonly Lane[];
}>;

/** Locks lane, ledger and order, in the order in which everybody does, and then looks. */
async function lockOrder(tx: Queryable, id: bigint): Promise<FoundOrder | null> {
  await tx.query(sql`SET LOCAL lock_timeout = '500ms'`);
  const [row] = await tx.query<{
    idempotency_key: string;
    destination: string;
    ordering_key: string | null;
  }>(sql`
    SELECT idempotency_key, destination, ordering_key FROM outbox.outbox_orders WHERE id = ${id}`);
  if (row === undefined) return null;
  const lanes =
    row.ordering_key === null ? [] : [{ destination: row.destination, orderingKey: row.ordering_key }];
  await lockLanes(tx, lanes);
  await lockLedger(tx, [row.idempotency_key]);
  const [order] = await tx.query<Omit<FoundOrder, 'lanes'>>(sql`
    SELECT t.status, t.resolution, t.in_doubt, ${hasSucceeded(sql`t.idempotency_key`)} AS has_succeeded,
           t.retry_count, t.idempotency_key, t.trace_id, t.ordering_seq
    FROM outbox.outbox_orders t WHERE t.id = ${id} FOR UPDATE`);
  return order === undefined ? null : { ...order, lanes };
}

function refuse(action: Action, found: FoundOrder, { effectChecked }: OrderAction): ActionOutcome | null {
  const { status, resolution } = found;
  const state = { status, resolution, inDoubt: found.in_doubt, hasSucceeded: found.has_succeeded };
  const refusal = refusalOf(action, state, effectChecked);
  if (refusal === null) return null;
  return refusal === 'wrong_status' ? { outcome: refusal, status, resolution } : { outcome: refusal };
}

async function resolve(
  tx: Queryable,
  {
    action,
    found,
    order,
    ledgerTtlMs,
  }: Readonly<{ action: Action; found: FoundOrder; order: OrderAction; ledgerTtlMs: number }>,
): Promise<void> {
  const reason = order.reason === null ? null : cleanText(order.reason, 1000);
  const lastError = action === 'cancel' ? errorText('CANCELLED', reason ?? `by ${order.actor}`) : null;
  await tx.query(sql`
    UPDATE outbox.outbox_orders
    SET status = 'dead', resolution = ${resolutionOf[action]}, last_error = COALESCE(${lastError}, last_error),
        held = false, updated_at = clock_timestamp()
    WHERE id = ${order.id}`);
  await tx.query(sql`
    UPDATE outbox.idempo_ledger
    SET status = 'failed', expires_at = clock_timestamp() + ${ledgerTtlMs} * interval '1 millisecond',
        updated_at = clock_timestamp()
    WHERE idempotency_key = ${found.idempotency_key}`);
  await tx.query(sql`
    INSERT INTO outbox.outbox_audit
      (outbox_id, status_from, status_to, retry_count, last_error, idempotency_key, trace_id, actor, reason)
    VALUES (${order.id}, ${found.status}, 'dead', ${found.retry_count}, ${lastError}, ${found.idempotency_key},
            ${found.trace_id}, ${order.actor}, ${reason === null ? resolutionOf[action] : `${resolutionOf[action]}: ${reason}`})`);
}

/** The same correction once more: its first answer was lost. */
async function isSupersededBy(tx: Queryable, id: bigint, idempotencyKey: string): Promise<boolean> {
  const rows = await tx.query(sql`
    SELECT 1 FROM outbox.outbox_orders WHERE supersedes_id = ${id} AND idempotency_key = ${idempotencyKey}`);
  return rows.length > 0;
}

/** Somebody else decides about the same order this moment; nothing was changed. */
async function unlessBusy<T>(work: () => Promise<T>): Promise<T | Readonly<{ outcome: 'busy' }>> {
  try {
    return await work();
  } catch (error) {
    if (codeOf(error) === '55P03') return { outcome: 'busy' };
    throw error;
  }
}
