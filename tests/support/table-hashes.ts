import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';

/** What a request that is refused must not change, as one hash per table. */
export async function tableHashes(db: Database): Promise<Readonly<Record<string, string>>> {
  const [row] = await db.query<Record<string, string>>(sql`
    SELECT (SELECT md5(COALESCE(string_agg(t::text, '|' ORDER BY t.id), '')) FROM dlq.dlq_messages t) AS messages,
           (SELECT md5(COALESCE(string_agg(t::text, '|' ORDER BY t.id), '')) FROM dlq.dlq_messages_archive t)
             AS archive,
           (SELECT md5(COALESCE(string_agg(t::text, '|' ORDER BY t.id), '')) FROM dlq.message_history t) AS history,
           (SELECT md5(COALESCE(string_agg(t::text, '|' ORDER BY t.topic_id, t.partition, t."offset"), ''))
            FROM dlq.arrivals t) AS arrivals,
           (SELECT md5(COALESCE(string_agg(concat_ws('/', t.id, t.first_offset, t.next_offset, t.high_offset,
                                                     t.last_seek), '|' ORDER BY t.id), ''))
            FROM dlq.source_partitions t) AS positions`);
  return row ?? {};
}
