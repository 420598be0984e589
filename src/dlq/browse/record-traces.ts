import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { recordSha256 as sha256OfRecord } from '../domain/record-sha256.ts';
import type { Payloads } from '../domain/payloads.ts';
import type { PartitionRef } from '../../kernel/broker-record.ts';

/** What a record became: a message, live or archived, with the hash of its bytes; or what is remembered of it. */
export type RecordTrace = Readonly<{
  offset: bigint;
  kind: 'messages' | 'archived' | 'cameBack' | 'deleted';
  sha256: Buffer | null;
}>;

/** What the database knows of a partition's records in [from, to): by row, by archived row, or by arrival. */
export async function selectTraces(
  { db, payloads }: Readonly<{ db: Queryable; payloads: Payloads }>,
  { topicId, partition }: PartitionRef,
  { from, to }: Readonly<{ from: bigint; to: bigint }>,
): Promise<readonly RecordTrace[]> {
  const rows = (table: Sql, kind: RecordTrace['kind']): Sql => sql`
    SELECT t.source_offset AS "offset", ${kind} AS kind, ${recordSha256} AS sha256,
           CASE WHEN t.data_key IS NOT NULL AND NOT ${wasRemoved} THEN t.id END AS sealed_id
    FROM ${table} t
    WHERE t.source_topic_id = ${topicId} AND t.source_partition = ${partition}
      AND t.source_offset >= ${from} AND t.source_offset < ${to}`;
  const found = await db.query<RecordTrace & Readonly<{ sealed_id: string | null }>>(sql`
    SELECT DISTINCT ON ("offset") "offset", kind, sha256, sealed_id FROM (
      ${rows(sql`dlq.dlq_messages`, 'messages')}
      UNION ALL
      ${rows(sql`dlq.dlq_messages_archive`, 'archived')}
      UNION ALL
      SELECT a."offset", CASE WHEN a.kind IN ('deleted', 'purged') THEN 'deleted' ELSE 'cameBack' END, NULL, NULL
      FROM dlq.arrivals a
      WHERE a.topic_id = ${topicId} AND a.partition = ${partition} AND a."offset" >= ${from} AND a."offset" < ${to}
    ) AS traces
    ORDER BY "offset", sealed_id NULLS LAST, sha256 NULLS LAST`);
  const opened = await openRecords(
    { db, payloads },
    found.flatMap(({ sealed_id: id }) => id ?? []),
  );
  return found.map(({ sealed_id: id, ...trace }) =>
    id === null ? trace : { ...trace, sha256: opened.get(id) ?? unreadable },
  );
}

/** Equal to no hash: an encrypted record that cannot be decrypted is not the one that was read. */
const unreadable = Buffer.alloc(0);
/** Records can be large. */
const openedAtOnce = 50;

/** The hashes of encrypted records as they arrived, by message. */
async function openRecords(
  { db, payloads }: Readonly<{ db: Queryable; payloads: Payloads }>,
  ids: readonly string[],
): Promise<ReadonlyMap<string, Buffer>> {
  const hashes = new Map<string, Buffer>();
  for (let at = 0; at < ids.length; at += openedAtOnce) {
    const some = ids.slice(at, at + openedAtOnce);
    const rows = await db.query<Readonly<{ id: string; key: Buffer | null; value: Buffer | null }>>(sql`
      SELECT v.message_id AS id, v.key, v.value FROM dlq.message_versions v
      WHERE v.message_id = ANY(${some}::uuid[]) AND v.version = 0
      UNION ALL
      SELECT t.id, t.message_key, t.raw_value FROM dlq.dlq_messages t
      WHERE t.id = ANY(${some}::uuid[]) AND t.version = 0
      UNION ALL
      SELECT t.id, t.message_key, t.raw_value FROM dlq.dlq_messages_archive t
      WHERE t.id = ANY(${some}::uuid[]) AND t.version = 0`);
    const opened = await payloads.open(
      rows.map(({ id, key, value }) => ({ id, isSealed: true, parts: { key, value } })),
    );
    opened.forEach((one, i) => {
      const id = rows[i]?.id ?? '';
      if (one.error !== null && one.error.kind === 'unavailable') throw one.error;
      if (one.parts !== null) hashes.set(id, sha256OfRecord(one.parts.key, one.parts.value));
    });
  }
  return hashes;
}

/** The same hash as `recordSha256` in the domain. */
const sha256Of = (key: Sql, value: Sql): Sql => sql`sha256(
  int4send(COALESCE(length(${key}), -1)) || COALESCE(${key}, '') ||
  int4send(COALESCE(length(${value}), -1)) || COALESCE(${value}, ''))`;

/** Of its key or value, before it was stored: there is nothing to compare the record with. */
const wasRemoved: Sql = sql`COALESCE(
  CASE WHEN t.version = 0 THEN t.removed_parts
       ELSE (SELECT v.removed_parts FROM dlq.message_versions v WHERE v.message_id = t.id AND v.version = 0) END
  && '{key,value}', false)`;

/** Of the record as it arrived, whatever was edited since. */
const recordSha256: Sql = sql`
  CASE WHEN t.data_key IS NOT NULL OR ${wasRemoved} THEN NULL
       WHEN t.version = 0 THEN ${sha256Of(sql`t.message_key`, sql`t.raw_value`)}
       ELSE (SELECT ${sha256Of(sql`v.key`, sql`v.value`)} FROM dlq.message_versions v
             WHERE v.message_id = t.id AND v.version = 0) END`;
