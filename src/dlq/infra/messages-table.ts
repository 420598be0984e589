import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import type { WorkTable } from '../../platform/postgres/work.ts';

/** The messages as a table of work: claimed, settled and reaped by the shared mechanism. */
export const messages: WorkTable = {
  slice: 'dlq',
  table: sql`dlq.dlq_messages`,
  key: sql`id`,
  keyArray: sql`uuid[]`,
};

/** Every column in its order in the table, for statements that move whole rows. */
const allColumns: Sql = sql`
  id, original_topic, error_message, retry_count, max_retries, payload, status, created_at, updated_at,
  last_retry_at, source_topic, source_topic_id, source_partition, source_offset, source_timestamp, message_key,
  raw_value, headers, dialect, error_class, error_stack, consumer_group, original_partition, original_offset,
  original_timestamp, fingerprint, unroutable, parent_id, resolution, attempt_no, published_sha256,
  lease_owner, lease_until, lease_epoch, lease_lost`;

/** A failure leaves a message DEAD when its budget is spent. Reads the row as it was before the statement. */
export const statusAfterFailure: Sql = sql`
  CASE WHEN t.retry_count >= t.max_retries THEN 'DEAD' ELSE 'PENDING' END`;

/** A CTE that tells people of the rows of `from` that became DEAD; `from` has id, original_topic, status, detail. */
export function tellOfDead(from: Sql): Sql {
  return sql`, told AS (
      INSERT INTO platform.notify_events (slice, kind, subject, item_id, summary)
      SELECT 'dlq', 'dead', original_topic, id::text, left(detail, 500) FROM ${from} WHERE status = 'DEAD'
    )`;
}

/** Moves an archived message back among the live ones, inside the caller's transaction. */
export async function moveBack(tx: Queryable, ids: readonly string[]): Promise<void> {
  await tx.query(sql`
    WITH moved AS (
      DELETE FROM dlq.dlq_messages_archive WHERE id = ANY(${ids}::uuid[]) RETURNING ${allColumns}
    )
    INSERT INTO dlq.dlq_messages (${allColumns}) SELECT ${allColumns} FROM moved`);
}
