import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import type { PartitionRef } from '../../kernel/broker-record.ts';

/** What a record became: a message, live or archived, with the hash of its bytes; or what is remembered of it. */
export type RecordTrace = Readonly<{
  offset: bigint;
  kind: 'messages' | 'archived' | 'cameBack' | 'deleted';
  sha256: Buffer | null;
}>;

/** What the database knows of a partition's records in [from, to): by row, by archived row, or by arrival. */
export function selectTraces(
  db: Queryable,
  { topicId, partition }: PartitionRef,
  { from, to }: Readonly<{ from: bigint; to: bigint }>,
): Promise<readonly RecordTrace[]> {
  const rows = (table: Sql, kind: RecordTrace['kind']): Sql => sql`
    SELECT t.source_offset AS "offset", ${kind} AS kind, ${recordSha256} AS sha256 FROM ${table} t
    WHERE t.source_topic_id = ${topicId} AND t.source_partition = ${partition}
      AND t.source_offset >= ${from} AND t.source_offset < ${to}`;
  return db.query<RecordTrace>(sql`
    SELECT DISTINCT ON ("offset") "offset", kind, sha256 FROM (
      ${rows(sql`dlq.dlq_messages`, 'messages')}
      UNION ALL
      ${rows(sql`dlq.dlq_messages_archive`, 'archived')}
      UNION ALL
      SELECT a."offset", CASE WHEN a.kind IN ('deleted', 'purged') THEN 'deleted' ELSE 'cameBack' END, NULL
      FROM dlq.arrivals a
      WHERE a.topic_id = ${topicId} AND a.partition = ${partition} AND a."offset" >= ${from} AND a."offset" < ${to}
    ) AS traces
    ORDER BY "offset", sha256 NULLS LAST`);
}

/** The same hash as `recordSha256` in the domain. */
const recordSha256: Sql = sql`sha256(
  int4send(COALESCE(length(t.message_key), -1)) || COALESCE(t.message_key, '') ||
  int4send(COALESCE(length(t.raw_value), -1)) || COALESCE(t.raw_value, ''))`;
