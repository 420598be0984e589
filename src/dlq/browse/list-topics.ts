import type { NameFilter } from '../../kernel/access/scope.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { isNamed } from '../../platform/postgres/is-named.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import type { Status } from '../domain/message.ts';
import { dateOrNull, epochMs } from '../instant.ts';

export type TopicSummary = Readonly<{
  topic: string;
  counts: Readonly<Record<Status, bigint>>;
  oldestPendingAt: Date | null;
  arrivedPerMinute: number;
}>;

const maxTopics = 10_000;

/**
 * Reads the running counts, not the messages. Arrivals are averaged over the last five whole minutes and the current
 * one.
 */
export async function listTopics(
  db: Queryable,
  names: NameFilter = null,
): Promise<Readonly<{ topics: readonly TopicSummary[]; isTruncated: boolean }>> {
  const rows = await db.query<{
    topic: string;
    pending: bigint;
    retrying: bigint;
    resolved: bigint;
    dead: bigint;
    arrived: bigint;
    oldest_pending_at: number | null;
  }>(sql`
    WITH counts AS MATERIALIZED (
      SELECT original_topic AS topic, ${byStatus},
             COALESCE(sum(arrived) FILTER (WHERE minute > clock_timestamp() - interval '5 minutes'), 0)::bigint
               AS arrived
      FROM dlq.topic_counts
      WHERE ${isNamed(sql`original_topic`, names)}
      GROUP BY original_topic
    ), listed AS MATERIALIZED (
      SELECT * FROM counts WHERE pending + retrying + resolved + dead > 0 ORDER BY topic LIMIT ${maxTopics + 1}
    )
    SELECT listed.*, (
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
  }));
  return { topics, isTruncated: rows.length > maxTopics };
}

const byStatus: Sql = sql`
  COALESCE(sum(messages) FILTER (WHERE status = 'PENDING'), 0)::bigint AS pending,
  COALESCE(sum(messages) FILTER (WHERE status = 'RETRYING'), 0)::bigint AS retrying,
  COALESCE(sum(messages) FILTER (WHERE status = 'RESOLVED'), 0)::bigint AS resolved,
  COALESCE(sum(messages) FILTER (WHERE status = 'DEAD'), 0)::bigint AS dead`;
