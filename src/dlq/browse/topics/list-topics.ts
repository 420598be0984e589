import type { NameFilter } from '../../../kernel/access/scope.ts';
import type { Queryable } from '../../../platform/postgres/database.ts';
import { isNamed } from '../../../platform/postgres/is-named.ts';
import { sql, type Sql } from '../../../platform/postgres/sql.ts';
import { statuses, type Status } from '../../domain/message.ts';
import { dateOrNull, epochMs } from '../../instant.ts';

export type TopicSummary = Readonly<{
  topic: string;
  counts: Readonly<Record<Status, bigint>>;
  oldestPendingAt: Date | null;
  arrivedPerMinute: number;
  /** How many wait for a route, because their original topic is not known. At most `maxUnroutable` of all topics. */
  unroutable: number;
  /** The dead-letter topics that its newest messages came from. */
  sources: readonly string[];
}>;

const maxTopics = 10_000;
const maxUnroutable = 10_000;
/** Of each status: messages of one topic hardly ever come from many dead-letter topics. */
const newestOfStatus = 5;

type TopicQuery = Readonly<{ names?: NameFilter; topic?: string | undefined }>;

/**
 * Reads the running counts, not the messages. Arrivals are averaged over the last five whole minutes and the current
 * one.
 */
export async function listTopics(
  db: Queryable,
  { names = null, topic }: TopicQuery = {},
): Promise<Readonly<{ topics: readonly TopicSummary[]; isTruncated: boolean }>> {
  const rows = await db.query<{
    topic: string;
    pending: bigint;
    retrying: bigint;
    resolved: bigint;
    dead: bigint;
    arrived: bigint;
    oldest_pending_at: number | null;
    unroutable: number;
    sources: readonly string[] | null;
  }>(sql`
    WITH counts AS MATERIALIZED (
      SELECT original_topic AS topic, ${byStatus},
             COALESCE(sum(arrived) FILTER (WHERE minute > clock_timestamp() - interval '5 minutes'), 0)::bigint
               AS arrived
      FROM dlq.topic_counts
      WHERE ${isNamed(sql`original_topic`, names)}
        AND ${topic === undefined ? sql`true` : sql`original_topic = ${topic}`}
      GROUP BY original_topic
    ), listed AS MATERIALIZED (
      SELECT * FROM counts WHERE pending + retrying + resolved + dead > 0 ORDER BY topic LIMIT ${maxTopics + 1}
    ), unroutable AS MATERIALIZED (
      SELECT original_topic AS topic, count(*)::int AS count
      FROM (SELECT t.original_topic FROM dlq.dlq_messages t WHERE t.unroutable LIMIT ${maxUnroutable}) AS t
      GROUP BY original_topic
    )
    SELECT listed.*, COALESCE((SELECT u.count FROM unroutable u WHERE u.topic = listed.topic), 0) AS unroutable, (
      SELECT array_agg(DISTINCT m.source_topic ORDER BY m.source_topic)
      FROM unnest(${statuses}::text[]) AS s (status)
      CROSS JOIN LATERAL (
        SELECT t.source_topic FROM dlq.dlq_messages t
        WHERE t.original_topic = listed.topic AND t.status = s.status
        ORDER BY t.created_at DESC, t.id DESC LIMIT ${newestOfStatus}
      ) AS m
      WHERE m.source_topic IS NOT NULL
    ) AS sources, (
      SELECT ${epochMs(sql`t.created_at`)} FROM dlq.dlq_messages t
      WHERE t.original_topic = listed.topic AND t.status = 'PENDING'
      ORDER BY t.created_at, t.id
      LIMIT 1
    ) AS oldest_pending_at
    FROM listed
    ORDER BY topic`);
  const topics = rows.slice(0, maxTopics).map((row) => ({
    topic: row.topic,
    counts: { PENDING: row.pending, RETRYING: row.retrying, RESOLVED: row.resolved, DEAD: row.dead },
    oldestPendingAt: dateOrNull(row.oldest_pending_at),
    arrivedPerMinute: Number(row.arrived) / 5,
    unroutable: row.unroutable,
    sources: row.sources ?? [],
  }));
  return { topics, isTruncated: rows.length > maxTopics };
}

const byStatus: Sql = sql`
  COALESCE(sum(messages) FILTER (WHERE status = 'PENDING'), 0)::bigint AS pending,
  COALESCE(sum(messages) FILTER (WHERE status = 'RETRYING'), 0)::bigint AS retrying,
  COALESCE(sum(messages) FILTER (WHERE status = 'RESOLVED'), 0)::bigint AS resolved,
  COALESCE(sum(messages) FILTER (WHERE status = 'DEAD'), 0)::bigint AS dead`;
