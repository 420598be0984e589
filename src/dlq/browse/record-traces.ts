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
const sha256Of = (key: Sql, value: Sql): Sql => sql`sha256(
  int4send(COALESCE(length(${key}), -1)) || COALESCE(${key}, '') ||
  int4send(COALESCE(length(${value}), -1)) || COALESCE(${value}, ''))`;

/** Of the record as it arrived, whatever was edited since. */
const recordSha256: Sql = sql`
  CASE WHEN t.version = 0 THEN ${sha256Of(sql`t.message_key`, sql`t.raw_value`)}
       ELSE (SELECT ${sha256Of(sql`v.key`, sql`v.value`)} FROM dlq.message_versions v
             WHERE v.message_id = t.id AND v.version = 0) END`;
