import type { Queryable } from '../platform/postgres/database.ts';
import { sql, type Sql } from '../platform/postgres/sql.ts';
import type { WorkTable } from '../platform/work/work.ts';
import { publishedParts } from './domain/dead-letter.ts';
import { notifyEvents } from '../platform/work/notify-events.ts';

/** Messages are claimed, settled and reaped by the shared mechanism. */
export const messages: WorkTable = {
  slice: 'dlq',
  table: sql`dlq.dlq_messages`,
  key: sql`id`,
  keyArray: sql`uuid[]`,
};

/** Every column in table order, for statements that move whole rows. */
const allColumns: Sql = sql`
  id, original_topic, error_message, retry_count, max_retries, payload, status, created_at, updated_at,
  last_retry_at, source_topic, source_topic_id, source_partition, source_offset, source_timestamp, message_key,
  raw_value, headers, dialect, error_class, error_stack, consumer_group, original_partition, original_offset,
  original_timestamp, fingerprint, unroutable, parent_id, resolution, attempt_no, published_sha256,
  lease_owner, lease_until, lease_epoch, lease_lost, source_compression, routed, next_attempt_at, retry_policy, version,
  data_key, key_hmac, record_hmac, removed_parts`;

export const hasAttempt: Sql = sql`t.retry_count < t.max_retries`;

/** Nobody is working on it and it has an attempt left. */
export const isDue: Sql = sql`t.status = 'PENDING' AND ${hasAttempt}`;

/** The value of the newest version: the raw bytes, or the payload's text if the row was inserted without them. */
export const recordValue: Sql = sql`
  CASE WHEN t.source_topic IS NULL AND t.version = 0 THEN convert_to(t.payload::text, 'UTF8') ELSE t.raw_value END`;

/**
 * False where there is nothing to publish: for a row of the predecessor that was stored without its value, and for a
 * dead letter of a share group that only points to its record (a null value would be a tombstone). An edit gives such a
 * message a value, which may be null.
 */
export const hasValue: Sql = sql`
  CASE WHEN t.version > 0 THEN true
       WHEN t.source_topic IS NULL THEN t.payload IS NOT NULL
       ELSE t.dialect IS DISTINCT FROM 'share-group' OR t.message_key IS NOT NULL OR t.raw_value IS NOT NULL END`;

/**
 * True if parts of what was sent were removed before it was stored: what is left must not be published. An edit that
 * gives them again makes it whole.
 */
export const isIncomplete: Sql = sql`COALESCE(t.removed_parts && ${publishedParts}::text[], false)`;

/** For the SET of every change of a message: a retry policy schedules it again from its end. */
export const unscheduled: Sql = sql`next_attempt_at = NULL, retry_policy = NULL`;

/** What the transaction writes from now on is no change of a message: `updated_at` stays. */
export async function keepUpdatedAt(tx: Queryable): Promise<void> {
  await tx.query(sql`SELECT set_config('dlq.deriving_fingerprints', 'on', true)`);
}

/** After a failure: DEAD if no attempt is left. Reads the row as it was before the statement. */
export const statusAfterFailure: Sql = sql`
  CASE WHEN t.retry_count >= t.max_retries THEN 'DEAD' ELSE 'PENDING' END`;

/** Notifies people of messages that became DEAD; `from` has id, original_topic, status and detail. */
export function notifyDead(from: Sql): Sql {
  return notifyEvents(
    {
      slice: sql`'dlq'`,
      kind: sql`'dead'`,
      subject: sql`original_topic`,
      itemId: sql`id`,
      summary: sql`detail`,
    },
    { from, where: sql`status = 'DEAD'` },
  );
}

/** Moves archived messages back to the live ones, in the caller's transaction. */
export async function restoreFromArchive(tx: Queryable, ids: readonly string[]): Promise<void> {
  await tx.query(sql`
    WITH moved AS (
      DELETE FROM dlq.dlq_messages_archive WHERE id = ANY(${ids}::uuid[]) RETURNING ${allColumns}
    )
    INSERT INTO dlq.dlq_messages (${allColumns}) SELECT ${allColumns} FROM moved`);
}
