import type { NameFilter } from '../../../kernel/access/scope.ts';
import type { Queryable } from '../../../platform/postgres/database.ts';
import { isNamed } from '../../../platform/postgres/is-named.ts';
import { joinSql, sql, type Sql } from '../../../platform/postgres/sql.ts';
import { statuses } from '../../domain/message.ts';

/** Fields of a search whose values can be completed. */
export const suggestedFields = [
  'status',
  'topic',
  'error_class',
  'consumer_group',
  'fingerprint',
  'key',
] as const;
export type SuggestedField = (typeof suggestedFields)[number];

export type Suggestion = Readonly<{
  value: string;
  /** Of a fingerprint: its error. */
  label: string | null;
  /** Messages with this value; null if they are not counted. */
  count: number | null;
}>;

export type Question = Readonly<{
  field: SuggestedField;
  /** What the user has typed. */
  prefix: string;
  limit: number;
  names: NameFilter;
}>;

/**
 * Values of the live messages for a completion list: those that begin with the text, then those that contain it, the
 * most frequent first; case does not matter. Reads running counts and the newest messages, never all of them.
 */
export async function suggestValues(
  db: Queryable,
  { field, prefix, limit, names }: Question,
): Promise<Readonly<{ values: readonly Suggestion[]; hasMore: boolean }>> {
  const rows = await db.query<Readonly<{ value: string; label: string | null; count: bigint | null }>>(sql`
    WITH found AS MATERIALIZED (${sources[field](names)}), placed AS (
      SELECT value, label, count, strpos(lower(value), lower(${prefix})) AS place,
             strpos(lower(label), lower(${prefix})) AS label_place
      FROM found
    )
    SELECT value, label, count FROM placed
    WHERE place > 0 OR label_place > 0
    ORDER BY place = 1 DESC, count DESC NULLS LAST, value
    LIMIT ${limit + 1}`);
  const values = rows.slice(0, limit).map(({ value, label, count }) => ({
    value,
    label,
    count: count === null ? null : Number(count),
  }));
  return { values, hasMore: rows.length > limit };
}

const sources: Readonly<Record<SuggestedField, (names: NameFilter) => Sql>> = {
  status: ofStatus,
  topic: ofTopic,
  error_class: ofErrorClass,
  consumer_group: ofConsumerGroup,
  fingerprint: ofFingerprint,
  key: ofKey,
};

function ofStatus(names: NameFilter): Sql {
  return sql`
    SELECT s.status AS value, NULL::text AS label, COALESCE(counted.messages, 0)::bigint AS count
    FROM unnest(${[...statuses]}::text[]) AS s (status)
    LEFT JOIN (
      SELECT status, sum(messages) AS messages FROM dlq.topic_counts
      WHERE ${isNamed(sql`original_topic`, names)} GROUP BY status
    ) AS counted ON counted.status = s.status`;
}

/** Original topics with their messages, and dead-letter topics, whose messages are not counted. */
function ofTopic(names: NameFilter): Sql {
  return sql`
    SELECT value, NULL::text AS label, max(count)::bigint AS count FROM (
      SELECT original_topic AS value, sum(messages) AS count FROM dlq.topic_counts
      WHERE ${isNamed(sql`original_topic`, names)} GROUP BY original_topic HAVING sum(messages) > 0
      UNION ALL
      SELECT DISTINCT topic, NULL::numeric FROM dlq.source_partitions
      WHERE forgotten IS NULL AND ${isNamed(sql`topic`, names)}
    ) AS topics
    GROUP BY value`;
}

function ofConsumerGroup(names: NameFilter): Sql {
  return sql`
    SELECT consumer_group AS value, NULL::text AS label, sum(messages)::bigint AS count FROM dlq.group_figures
    WHERE consumer_group <> '' AND ${isNamed(sql`original_topic`, names)}
    GROUP BY consumer_group HAVING sum(messages) > 0`;
}

function ofFingerprint(names: NameFilter): Sql {
  return sql`
    SELECT g.fingerprint AS value, concat_ws(': ', g.class, g.template) AS label, g.messages AS count
    FROM (${newestGroups(names)}) AS g`;
}

/** The newest message of each group has the class of all its messages. */
function ofErrorClass(names: NameFilter): Sql {
  const newest = statuses.map(
    (status) => sql`(
      SELECT t.error_class, t.created_at FROM dlq.dlq_messages t
      WHERE t.fingerprint = g.fingerprint AND t.status = ${status}
      ORDER BY t.created_at DESC, t.id DESC LIMIT 1)`,
  );
  return sql`
    SELECT m.error_class AS value, NULL::text AS label, sum(g.messages)::bigint AS count
    FROM (${newestGroups(names)}) AS g
    CROSS JOIN LATERAL (
      SELECT n.error_class FROM (${joinSql(newest, sql` UNION ALL `)}) AS n ORDER BY n.created_at DESC LIMIT 1
    ) AS m
    WHERE m.error_class IS NOT NULL
    GROUP BY m.error_class`;
}

/** More causes than a person looks through; in an ordinary system there are fewer in all. */
const readGroups = 1000;

/** The groups with messages, the latest failures first. */
function newestGroups(names: NameFilter): Sql {
  return sql`
    SELECT f.fingerprint, f.class, f.template, figures.messages
    FROM dlq.fingerprints f
    CROSS JOIN LATERAL (
      SELECT COALESCE(sum(c.messages), 0)::bigint AS messages FROM dlq.group_figures c
      WHERE c.fingerprint = f.fingerprint AND ${isNamed(sql`c.original_topic`, names)}
    ) AS figures
    WHERE figures.messages > 0
    ORDER BY f.last_at DESC, f.fingerprint DESC
    LIMIT ${readGroups}`;
}

const readMessages = 5000;
const suggestedKeyBytes = 1024;

/** Keys that are text, of the newest messages; not those that are encrypted. */
function ofKey(names: NameFilter): Sql {
  return sql`
    SELECT read.text AS value, NULL::text AS label, keys.count
    FROM (
      SELECT newest.message_key, count(*) AS count
      FROM (
        SELECT CASE WHEN t.data_key IS NULL THEN t.message_key END AS message_key, t.original_topic FROM dlq.dlq_messages t
        ORDER BY t.created_at DESC, t.id DESC LIMIT ${readMessages}
      ) AS newest
      WHERE octet_length(newest.message_key) BETWEEN 1 AND ${suggestedKeyBytes}
        AND ${isNamed(sql`newest.original_topic`, names)}
      GROUP BY newest.message_key
    ) AS keys
    CROSS JOIN LATERAL (SELECT dlq.readable_text(keys.message_key) AS text OFFSET 0) AS read
    WHERE convert_to(read.text, 'UTF8') = keys.message_key`;
}
