import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { notify } from '../../platform/postgres/wake.ts';
import { sha256Of } from '../../kernel/canonical-json.ts';
import { outboxChannel } from './outbox-channel.ts';

/**
 * An order of the system itself, in the transaction of what it tells about. Nobody can name it, so it needs no
 * ledger: its key is made here.
 */
export async function addInternalOrder(
  tx: Queryable,
  order: Readonly<{ destination: string; id: string; request: unknown; orderingKey?: string }>,
): Promise<void> {
  const request = JSON.stringify(order.request);
  const key = `${order.destination}:${order.id}`;
  const orderingKey = order.orderingKey ?? null;
  if (orderingKey !== null)
    await tx.query(sql`
      SELECT pg_advisory_xact_lock(hashtextextended(${orderingKey}, hashtextextended(${order.destination}, 4)))`);
  await tx.query(sql`
    WITH added AS (
      INSERT INTO outbox.outbox_orders
        (idempotency_key, request_json, request_digest, status, next_attempt_at, destination, ordering_key, ordering_seq)
      VALUES (${key}, ${request}::jsonb, ${sha256Of(request)}, 'queued', clock_timestamp(), ${order.destination},
              ${orderingKey}, CASE WHEN ${orderingKey}::text IS NOT NULL THEN nextval('outbox.ordering_seqs') END)
      RETURNING id, idempotency_key
    )
    INSERT INTO outbox.outbox_audit (outbox_id, status_to, retry_count, idempotency_key, actor)
    SELECT id, 'queued', 0, idempotency_key, 'system' FROM added`);
  await notify(tx, outboxChannel(order.destination));
}
