import type { Queryable } from '../../platform/postgres/database.ts';
import { joinSql, sql, type Sql } from '../../platform/postgres/sql.ts';
import { statuses, type Status } from '../domain/message.ts';
import type {
  Count,
  HistoryEntry,
  Keyset,
  Message,
  MessageFilter,
  MessageReader,
  TopicSummary,
} from '../usecase/ports.ts';
import { readHeaders, type StoredHeader } from './stored-headers.ts';

/** Beyond this a total is an estimate: counting on would cost more than the answer is worth. */
const exactCountLimit = 10_000;
/** A list leaves larger payloads out, so that a page of them cannot grow to a hundred megabytes. */
const listedPayloadBytes = 65_536;

export function createPostgresMessageReader(db: Queryable): MessageReader {
  return {
    async find(id) {
      const rows = await db.query<MessageRow>(sql`
        SELECT ${messageColumns}, ${wholePayload}, false AS is_archived FROM dlq.dlq_messages t WHERE t.id = ${id}
        UNION ALL
        SELECT ${messageColumns}, ${wholePayload}, true AS is_archived FROM dlq.dlq_messages_archive t
        WHERE t.id = ${id}`);
      return rows[0] === undefined ? null : messageOf(rows[0]);
    },

    async findRaw(id) {
      const rows = await db.query<{
        key: Buffer | null;
        value: Buffer | null;
        headers: readonly StoredHeader[] | null;
      }>(sql`
        SELECT ${rawColumns} FROM dlq.dlq_messages t WHERE t.id = ${id}
        UNION ALL
        SELECT ${rawColumns} FROM dlq.dlq_messages_archive t WHERE t.id = ${id}`);
      const [row] = rows;
      return row === undefined ? null : { ...row, headers: readHeaders(row.headers) };
    },

    history: (id) => selectHistory(db, id),

    async list(filter, { limit, offset, after }) {
      const rows = await db.query<MessageRow>(sql`
        WITH page AS MATERIALIZED (
          SELECT id, created_at FROM (${matching(filter, limit + offset, after)}) AS found
          ORDER BY created_at DESC, id DESC
          LIMIT ${limit} OFFSET ${offset}
        )
        SELECT ${messageColumns}, ${listedPayload}, false AS is_archived
        FROM page JOIN dlq.dlq_messages t ON t.id = page.id
        ORDER BY page.created_at DESC, page.id DESC`);
      return rows.map(messageOf);
    },

    count: (filter) => countMatching(db, filter),
    topics: () => selectTopics(db),
  };
}

/**
 * The ids of matching rows, newest first, as a merge of index ranges: one per status, and for a topic one per
 * way in which it can match. Each range is read in order and only as far as the page needs, so the first page
 * costs the same with ten million rows.
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

async function countMatching(db: Queryable, filter: MessageFilter): Promise<Count> {
  const rows = await db.query<{ count: bigint }>(sql`
    SELECT count(*) AS count FROM (
      SELECT 1 FROM (${matching(filter, exactCountLimit + 1, null)}) AS found LIMIT ${exactCountLimit + 1}
    ) AS counted`);
  const count = Number(rows[0]?.count ?? 0n);
  if (count <= exactCountLimit) return { total: count, isEstimate: false };
  return { total: Math.max(await estimate(db, filter), count), isEstimate: true };
}

/**
 * From the running counts. They are kept by original topic; for a dead-letter topic those count whose messages
 * a look at its oldest rows finds, which is right unless an original topic has several dead-letter topics.
 */
async function estimate(db: Queryable, { topic, status }: MessageFilter): Promise<number> {
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

const messageColumns: Sql = sql`
  t.id, t.original_topic, t.error_message, t.retry_count, t.max_retries, t.status, t.created_at, t.updated_at,
  t.last_retry_at, to_char(t.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS created_at_exact, t.source_topic, t.source_partition, t.source_offset,
  t.message_key, t.dialect, t.error_class, t.error_stack, t.consumer_group, t.original_partition,
  t.original_offset, t.original_timestamp, t.fingerprint, t.unroutable, t.parent_id, t.resolution,
  t.attempt_no, COALESCE(t.lease_until > clock_timestamp(), false) AS lease_is_live, t.lease_lost`;

const wholePayload: Sql = sql`t.payload::text AS payload_text, false AS is_payload_omitted`;

/** As long as it is when it is shown; the size of the column is what compression has made of it. */
const payloadBytes: Sql = sql`
  CASE WHEN t.payload IS NOT NULL THEN COALESCE(octet_length(t.raw_value), octet_length(t.payload::text)) END`;

const listedPayload: Sql = sql`
  CASE WHEN ${payloadBytes} <= ${listedPayloadBytes} THEN t.payload::text END AS payload_text,
  COALESCE(${payloadBytes} > ${listedPayloadBytes}, false) AS is_payload_omitted`;

const rawColumns: Sql = sql`
  t.message_key AS key,
  CASE WHEN t.source_topic IS NULL THEN convert_to(t.payload::text, 'UTF8') ELSE t.raw_value END AS value,
  t.headers`;

type MessageRow = {
  id: string;
  original_topic: string;
  error_message: string;
  retry_count: number;
  max_retries: number;
  payload_text: string | null;
  is_payload_omitted: boolean;
  status: Status;
  created_at: Date;
  created_at_exact: string;
  updated_at: Date;
  last_retry_at: Date | null;
  source_topic: string | null;
  source_partition: number | null;
  source_offset: bigint | null;
  message_key: Buffer | null;
  dialect: string | null;
  error_class: string | null;
  error_stack: string | null;
  consumer_group: string | null;
  original_partition: number | null;
  original_offset: bigint | null;
  original_timestamp: Date | null;
  fingerprint: string | null;
  unroutable: boolean;
  parent_id: string | null;
  resolution: string | null;
  attempt_no: number;
  lease_is_live: boolean;
  lease_lost: boolean;
  is_archived: boolean;
};

function messageOf(row: MessageRow): Message {
  return {
    id: row.id,
    originalTopic: row.original_topic,
    errorMessage: row.error_message,
    retryCount: row.retry_count,
    maxRetries: row.max_retries,
    payloadText: row.payload_text,
    isPayloadOmitted: row.is_payload_omitted,
    status: row.status,
    createdAt: row.created_at,
    createdAtExact: row.created_at_exact,
    updatedAt: row.updated_at,
    lastRetryAt: row.last_retry_at,
    sourceTopic: row.source_topic,
    sourcePartition: row.source_partition,
    sourceOffset: row.source_offset,
    key: row.message_key,
    dialect: row.dialect,
    errorClass: row.error_class,
    errorStack: row.error_stack,
    consumerGroup: row.consumer_group,
    originalPartition: row.original_partition,
    originalOffset: row.original_offset,
    originalTimestamp: row.original_timestamp,
    fingerprint: row.fingerprint,
    unroutable: row.unroutable,
    parentId: row.parent_id,
    resolution: row.resolution,
    attemptNo: row.attempt_no,
    leaseIsLive: row.lease_is_live,
    leaseLost: row.lease_lost,
    isArchived: row.is_archived,
  };
}

async function selectHistory(db: Queryable, id: string): Promise<readonly HistoryEntry[]> {
  return db.query<HistoryEntry>(sql`
    SELECT at, event, actor, reason, status_from AS "statusFrom", status_to AS "statusTo",
           retry_count AS "retryCount", attempt_no AS "attemptNo", topic, partition, "offset", detail
    FROM dlq.message_history
    WHERE message_id = ${id}
    ORDER BY id
    LIMIT 10000`);
}

/** Arrivals are averaged over the last five whole minutes and the running one. */
async function selectTopics(db: Queryable): Promise<readonly TopicSummary[]> {
  const rows = await db.query<{
    topic: string;
    pending: bigint;
    retrying: bigint;
    resolved: bigint;
    dead: bigint;
    arrived: bigint;
    oldest_pending_at: Date | null;
  }>(sql`
    WITH counts AS MATERIALIZED (
      SELECT original_topic AS topic,
             COALESCE(sum(messages) FILTER (WHERE status = 'PENDING'), 0)::bigint AS pending,
             COALESCE(sum(messages) FILTER (WHERE status = 'RETRYING'), 0)::bigint AS retrying,
             COALESCE(sum(messages) FILTER (WHERE status = 'RESOLVED'), 0)::bigint AS resolved,
             COALESCE(sum(messages) FILTER (WHERE status = 'DEAD'), 0)::bigint AS dead,
             COALESCE(sum(arrived) FILTER (WHERE minute > clock_timestamp() - interval '5 minutes'), 0)::bigint
               AS arrived
      FROM dlq.topic_counts
      GROUP BY original_topic
    )
    SELECT counts.*, (
      SELECT t.created_at FROM dlq.dlq_messages t
      WHERE t.original_topic = counts.topic AND t.status = 'PENDING'
      ORDER BY t.created_at, t.id
      LIMIT 1
    ) AS oldest_pending_at
    FROM counts
    WHERE pending + retrying + resolved + dead > 0
    ORDER BY topic
    LIMIT 10000`);
  return rows.map((row) => ({
    topic: row.topic,
    counts: { PENDING: row.pending, RETRYING: row.retrying, RESOLVED: row.resolved, DEAD: row.dead },
    oldestPendingAt: row.oldest_pending_at,
    arrivedPerMinute: Number(row.arrived) / 5,
  }));
}
