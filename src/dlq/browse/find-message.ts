import { MAX_JSON_BYTES } from '../../kernel/json-extent.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { messageNotFound, type Message, type MessageHead } from '../stored-message.ts';
import type { Payloads } from '../domain/payloads.ts';
import { messageColumns, messagesOf, type MessageRow } from './message-row.ts';
import { hasValue } from '../messages-table.ts';

/** Every function here looks among the live and the archived messages. */

export async function getMessage(db: Queryable, id: string, payloads: Payloads): Promise<Message> {
  const [row] = await db.query<MessageRow>(sql`
    SELECT ${messageColumns}, ${wholeTexts}, false AS is_archived FROM dlq.dlq_messages t WHERE t.id = ${id}
    UNION ALL
    SELECT ${messageColumns}, ${wholeTexts}, true AS is_archived FROM dlq.dlq_messages_archive t WHERE t.id = ${id}`);
  const [message] = row === undefined ? [] : await messagesOf(payloads, [row]);
  if (message === undefined) throw messageNotFound(id);
  return message;
}

/** A payload stored before there was a limit is omitted if it exceeds it; the raw record still has the bytes. */
const wholeTexts: Sql = sql`
  t.error_message, t.error_stack, t.message_key, false AS is_key_omitted,
  CASE WHEN platform.json_bytes(t.payload) <= ${MAX_JSON_BYTES} THEN t.payload::text END AS payload_text,
  CASE WHEN t.data_key IS NOT NULL AND octet_length(t.raw_value) <= ${MAX_JSON_BYTES} THEN t.raw_value END AS sealed_value,
  t.payload IS NOT NULL OR (t.data_key IS NOT NULL AND t.raw_value IS NOT NULL) AS has_payload`;

export async function findHead(db: Queryable, id: string): Promise<MessageHead | null> {
  const rows = await db.query<MessageHead>(sql`
    SELECT ${headColumns}, false AS "isArchived" FROM dlq.dlq_messages t WHERE t.id = ${id}
    UNION ALL
    SELECT ${headColumns}, true AS "isArchived" FROM dlq.dlq_messages_archive t WHERE t.id = ${id}`);
  return rows[0] ?? null;
}

const headColumns: Sql = sql`
  t.id, t.status, t.retry_count AS "retryCount", t.max_retries AS "maxRetries", t.attempt_no AS "attemptNo",
  COALESCE(t.lease_until > clock_timestamp(), false) AS "leaseIsLive", t.lease_lost AS "leaseLost",
  t.version, t.lease_epoch AS epoch, t.original_topic AS "originalTopic", t.source_topic AS "sourceTopic", t.unroutable, t.routed AS "isRouted",
  ${hasValue} AS "hasValue", t.removed_parts AS "removedParts"`;

/** How many bytes the message has in a response; 0 if there is no such message. */
export async function measureMessage(db: Queryable, id: string): Promise<number> {
  const [row] = await db.query<{ payload: bigint }>(sql`
    SELECT ${sizes} FROM dlq.dlq_messages t WHERE t.id = ${id}
    UNION ALL
    SELECT ${sizes} FROM dlq.dlq_messages_archive t WHERE t.id = ${id}`);
  return Number(row?.payload ?? 0n);
}

/** The lengths of byte columns are known without decompressing them. */
const sizes: Sql = sql`
  COALESCE(LEAST(CASE WHEN t.data_key IS NULL THEN platform.json_bytes(t.payload)
                      ELSE octet_length(t.raw_value) END, ${MAX_JSON_BYTES}::bigint), 0)
    + COALESCE(octet_length(t.error_stack), 0) + octet_length(t.error_message)
    + COALESCE(octet_length(t.message_key), 0)::bigint * 4 / 3 AS payload`;
