import { sha256Of } from '../../kernel/canonical-json.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { unnestRows, type Column } from '../../platform/postgres/unnest-rows.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { notify } from '../../platform/work/wake.ts';
import { outboxChannel } from '../channel.ts';

/** An order of the system itself; `id` is unique among the orders of its destination. */
export type InternalOrder = Readonly<{
  destination: string;
  id: string;
  request: unknown;
  orderingKey?: string;
}>;

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
 * Adds orders of the system itself, in the transaction of the event that they report. Orders of one ordering key are
 * sent in the order of the list. They have no ledger entry: their keys are generated here, so no caller can repeat one.
 */
export async function addInternalOrders(tx: Queryable, orders: readonly InternalOrder[]): Promise<void> {
  if (orders.length === 0) return;
  await lockOrderingKeys(tx, orders);
  const numbered = orders.map((order, no) => ({ ...order, no, json: JSON.stringify(order.request) }));
  await tx.query(sql`
    WITH added AS (
      INSERT INTO outbox.outbox_orders
        (idempotency_key, request_json, request_digest, status, next_attempt_at, destination, ordering_key, ordering_seq)
      SELECT idempotency_key, request, digest, 'queued', clock_timestamp(), destination, ordering_key,
             CASE WHEN ordering_key IS NOT NULL THEN nextval('outbox.ordering_seqs') END
      FROM (SELECT new.* FROM ${unnestRows(sql`new`, numbered, orderColumns)} ORDER BY no) AS sorted
      RETURNING id, idempotency_key
    )
    INSERT INTO outbox.outbox_audit (outbox_id, status_to, retry_count, idempotency_key, actor)
    SELECT id, 'queued', 0, idempotency_key, 'system' FROM added`);
  for (const destination of new Set(orders.map((order) => order.destination)))
    await notify(tx, outboxChannel(destination));
}

/**
 * Takes the lock of `outbox.insert_order` until the commit, so that sequence numbers of one ordering key are committed
 * in their order. The locks are sorted, so two transactions that take several do not deadlock.
 */
async function lockOrderingKeys(tx: Queryable, orders: readonly InternalOrder[]): Promise<void> {
  const keyed = orders.filter(({ orderingKey }) => orderingKey !== undefined);
  if (keyed.length === 0) return;
  const lanes = unnestRows(sql`lane`, keyed, [
    [sql`destination`, sql`text[]`, ({ destination }) => destination],
    [sql`ordering_key`, sql`text[]`, ({ orderingKey }) => orderingKey],
  ]);
  await tx.query(sql`
    SELECT pg_advisory_xact_lock(hash)
    FROM (SELECT DISTINCT hashtextextended(lane.ordering_key, hashtextextended(lane.destination, 4)) AS hash
          FROM ${lanes} ORDER BY 1) AS sorted`);
}
