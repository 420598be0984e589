import type { Queryable } from '../../platform/postgres/database.ts';
import { joinSql, sql, type Sql } from '../../platform/postgres/sql.ts';
import { statuses, type Status } from '../domain/message.ts';
import type { Keyset, Message } from '../stored-message.ts';
import { messageColumns, messageOf, type MessageRow } from './message-row.ts';

/** The topic is the original or the dead-letter topic. */
export type MessageFilter = Readonly<{ topic?: string; status?: Status }>;

export type ListWindow =
  | Readonly<{ by: 'number'; offset: number; pageSize: number }>
  | Readonly<{ by: 'keyset'; after: Keyset | null; pageSize: number }>;

export type Count = Readonly<{ total: number; isEstimate: boolean }>;

export type MessagePage = Readonly<{ messages: readonly Message[]; count: Count; hasNext: boolean }>;

/** Above this number the total is an estimate: an exact count would be too slow. */
const exactCountLimit = 10_000;
/** Lists omit larger payloads and keys, and cut longer errors: a page stays below 7 MB. */
const listedPayloadBytes = 65_536;
const listedKeyBytes = 1024;
const listedErrorLength = 2000;

/** One page, newest first, with the total. Reads one row more than the page to know whether there is a next one. */
export async function listMessages(
  db: Queryable,
  filter: MessageFilter,
  window: ListWindow,
): Promise<MessagePage> {
  const count = await countMessages(db, filter);
  const offset = window.by === 'number' ? window.offset : 0;
  if (offset >= count.total && window.by === 'number') return { messages: [], count, hasNext: false };
  const after = window.by === 'keyset' ? window.after : null;
  const limit = window.pageSize + 1;
  const rows = await db.query<MessageRow>(sql`
    WITH page AS MATERIALIZED (
      SELECT id, created_at FROM (${matching(filter, limit + offset, after)}) AS found
      ORDER BY created_at DESC, id DESC
      LIMIT ${limit} OFFSET ${offset}
    )
    SELECT ${messageColumns}, ${listedTexts}, false AS is_archived
    FROM page JOIN dlq.dlq_messages t ON t.id = page.id
    ORDER BY page.created_at DESC, page.id DESC`);
  const messages = rows.slice(0, window.pageSize).map(messageOf);
  return { messages, count, hasNext: rows.length > window.pageSize };
}

/**
 * Measures the JSON text: the column is compressed, and PostgreSQL writes numbers without exponents. The length of
 * the raw value is checked first because reading it decompresses nothing.
 */
const isListed: Sql = sql`(
  COALESCE(octet_length(t.raw_value), 0) <= ${listedPayloadBytes}
  AND platform.json_bytes(t.payload) <= ${listedPayloadBytes})`;

const isKeyListed: Sql = sql`octet_length(t.message_key) <= ${listedKeyBytes}`;

const listedTexts: Sql = sql`
  left(t.error_message, ${listedErrorLength}) AS error_message, NULL AS error_stack,
  CASE WHEN ${isKeyListed} THEN t.message_key END AS message_key, COALESCE(NOT ${isKeyListed}, false) AS is_key_omitted,
  CASE WHEN ${isListed} THEN t.payload::text END AS payload_text, t.payload IS NOT NULL AS has_payload`;

/**
 * The ids of matching rows, newest first, merged from index ranges: one per status, and for a topic one per column
 * that it can match. Each range is read in order and only as far as the page needs, so the first page takes the same
 * time with ten million rows.
 */
function matching(filter: MessageFilter, limit: number, after: Keyset | null): Sql {
  const wanted = filter.status === undefined ? statuses : [filter.status];
  const range = (where: Sql): Sql => sql`(
    SELECT t.id, t.created_at FROM dlq.dlq_messages t
    WHERE ${where} AND ${isAfter(after)}
    ORDER BY t.created_at DESC, t.id DESC
    LIMIT ${limit})`;
  if (filter.topic === undefined)
    return filter.status === undefined ? range(sql`true`) : range(sql`t.status = ${filter.status}`);
  const ranges = wanted.flatMap((status) => [
    range(sql`t.original_topic = ${filter.topic} AND t.status = ${status}`),
    range(
      sql`t.source_topic = ${filter.topic} AND t.status = ${status} AND t.original_topic <> ${filter.topic}`,
    ),
  ]);
  return joinSql(ranges, sql` UNION ALL `);
}

function isAfter(after: Keyset | null): Sql {
  return after === null
    ? sql`true`
    : sql`(t.created_at, t.id) < (${after.createdAt}::timestamptz, ${after.id}::uuid)`;
}

async function countMessages(db: Queryable, filter: MessageFilter): Promise<Count> {
  const rows = await db.query<{ count: bigint }>(sql`
    SELECT count(*) AS count FROM (
      SELECT 1 FROM (${matching(filter, exactCountLimit + 1, null)}) AS found LIMIT ${exactCountLimit + 1}
    ) AS counted`);
  const count = Number(rows[0]?.count ?? 0n);
  if (count <= exactCountLimit) return { total: count, isEstimate: false };
  return { total: Math.max(await estimateCount(db, filter), count), isEstimate: true };
}

/**
 * Adds up the running counts, which are kept by original topic. For a dead-letter topic it samples rows to find its
 * original topics, so the result is too high if one of those has several dead-letter topics.
 */
async function estimateCount(db: Queryable, { topic, status }: MessageFilter): Promise<number> {
  const ofTopic =
    topic === undefined
      ? sql`true`
      : sql`original_topic IN (
          SELECT ${topic} UNION SELECT original_topic FROM (
            SELECT t.original_topic FROM dlq.dlq_messages t WHERE t.source_topic = ${topic}
            ORDER BY t.status, t.created_at, t.id LIMIT 1000
          ) AS sampled)`;
  const rows = await db.query<{ count: bigint }>(sql`
    SELECT COALESCE(sum(messages), 0)::bigint AS count FROM dlq.topic_counts
    WHERE ${ofTopic} AND ${status === undefined ? sql`true` : sql`status = ${status}`}`);
  return Number(rows[0]?.count ?? 0n);
}
