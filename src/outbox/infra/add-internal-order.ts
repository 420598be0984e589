import { sha256Of } from '../../kernel/canonical-json.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { rowsOf, type Column } from '../../platform/postgres/rows-of.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { notify } from '../../platform/postgres/wake.ts';
import { outboxChannel } from './outbox-channel.ts';

/** An order of the system itself; `id` is its own among all orders to its destination. */
export type InternalOrder = Readonly<{
  destination: string;
  id: string;
  request: unknown;
  orderingKey?: string;
}>;

export async function addInternalOrder(tx: Queryable, order: InternalOrder): Promise<void> {
  await addInternalOrders(tx, [order]);
}

type NumberedOrder = InternalOrder & Readonly<{ no: number; json: string }>;

const orderColumns: readonly Column<NumberedOrder>[] = [
  [sql`no`, sql`int[]`, ({ no }) => no],
  [sql`idempotency_key`, sql`text[]`, ({ destination, id }) => `${destination}:${id}`],
  [sql`request`, sql`jsonb[]`, ({ json }) => json],
  [sql`digest`, sql`text[]`, ({ json }) => sha256Of(json)],
  [sql`destination`, sql`text[]`, ({ destination }) => destination],
  [sql`ordering_key`, sql`text[]`, ({ orderingKey }) => orderingKey ?? null],
];

/**
 * Orders of the system itself, in the transaction of what they tell about; those of one key go out in the order of
 * the list. Nobody can name them, so they need no ledger: their keys are made here.
 */
export async function addInternalOrders(tx: Queryable, orders: readonly InternalOrder[]): Promise<void> {
  if (orders.length === 0) return;
  await lockKeys(tx, orders);
  const numbered = orders.map((order, no) => ({ ...order, no, json: JSON.stringify(order.request) }));
  await tx.query(sql`
    WITH added AS (
      INSERT INTO outbox.outbox_orders
        (idempotency_key, request_json, request_digest, status, next_attempt_at, destination, ordering_key, ordering_seq)
      SELECT idempotency_key, request, digest, 'queued', clock_timestamp(), destination, ordering_key,
             CASE WHEN ordering_key IS NOT NULL THEN nextval('outbox.ordering_seqs') END
      FROM (SELECT told.* FROM ${rowsOf(sql`told`, numbered, orderColumns)} ORDER BY no) AS sorted
      RETURNING id, idempotency_key
    )
    INSERT INTO outbox.outbox_audit (outbox_id, status_to, retry_count, idempotency_key, actor)
    SELECT id, 'queued', 0, idempotency_key, 'system' FROM added`);
  for (const destination of new Set(orders.map((order) => order.destination)))
    await notify(tx, outboxChannel(destination));
}

/**
 * The lock of `outbox.insert_order`, held to the commit: a smaller number of a key is never committed after a larger
 * one. Taken in one order by everybody who takes several.
 */
async function lockKeys(tx: Queryable, orders: readonly InternalOrder[]): Promise<void> {
  const keyed = orders.filter(({ orderingKey }) => orderingKey !== undefined);
  if (keyed.length === 0) return;
  const lanes = rowsOf(sql`lane`, keyed, [
    [sql`destination`, sql`text[]`, ({ destination }) => destination],
    [sql`ordering_key`, sql`text[]`, ({ orderingKey }) => orderingKey],
  ]);
  await tx.query(sql`
    SELECT pg_advisory_xact_lock(hash)
    FROM (SELECT DISTINCT hashtextextended(lane.ordering_key, hashtextextended(lane.destination, 4)) AS hash
          FROM ${lanes} ORDER BY 1) AS sorted`);
}
