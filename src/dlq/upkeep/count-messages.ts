import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { statuses, type Status } from '../domain/message.ts';

export type MessageCounts = Readonly<{
  /** The topic is null for all topics that are not counted by name. */
  topics: readonly Readonly<{ topic: string | null; counts: readonly (readonly [Status, number])[] }>[];
  oldestPendingSeconds: number;
  /** Seconds since 1970; null without PENDING messages. */
  oldestPendingAt: number | null;
}>;

/**
 * Counts the topics with the most messages by name and all others together: headers choose topic names, so their
 * number has no limit.
 */
export async function countMessages(db: Queryable, namedTopics: number): Promise<MessageCounts> {
  const rows = await db.query<Record<string, bigint> & { topic: string | null }>(sql`
    WITH counts AS MATERIALIZED (
      SELECT original_topic AS topic, ${byStatus}, sum(messages) AS total
      FROM dlq.topic_counts
      GROUP BY original_topic
    ), ranked AS (
      SELECT counts.*, row_number() OVER (ORDER BY total DESC, topic) <= ${namedTopics} AS is_named
      FROM counts WHERE total <> 0
    )
    SELECT CASE WHEN is_named THEN topic END AS topic, sum(pending)::bigint AS "PENDING", sum(retrying)::bigint AS "RETRYING",
           sum(resolved)::bigint AS "RESOLVED", sum(dead)::bigint AS "DEAD"
    FROM ranked
    GROUP BY 1`);
  const oldest = await db.query<{ seconds: number; at: number }>(sql`
    SELECT date_part('epoch', clock_timestamp() - t.created_at) AS seconds,
           date_part('epoch', t.created_at) AS at FROM dlq.dlq_messages t
    WHERE t.status = 'PENDING' AND isfinite(t.created_at)
    ORDER BY t.created_at, t.id
    LIMIT 1`);
  return {
    topics: rows.map(({ topic, ...counts }) => ({
      topic,
      counts: statuses.map((status) => [status, Number(counts[status] ?? 0n)] as const),
    })),
    oldestPendingSeconds: Math.max(0, oldest[0]?.seconds ?? 0),
    oldestPendingAt: oldest[0]?.at ?? null,
  };
}

const byStatus: Sql = sql`
  COALESCE(sum(messages) FILTER (WHERE status = 'PENDING'), 0)::bigint AS pending,
  COALESCE(sum(messages) FILTER (WHERE status = 'RETRYING'), 0)::bigint AS retrying,
  COALESCE(sum(messages) FILTER (WHERE status = 'RESOLVED'), 0)::bigint AS resolved,
  COALESCE(sum(messages) FILTER (WHERE status = 'DEAD'), 0)::bigint AS dead`;
