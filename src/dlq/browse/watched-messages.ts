import { sql, type Sql } from '../../platform/postgres/sql.ts';
import {
  attentionCounted,
  kindWatched,
  newestWatched,
  type WatchedRows,
} from '../../platform/work/changes/watched-rows.ts';

const columns = sql`t.id::text AS id, t.original_topic::text AS name, t.xmin AS xid`;

/** Ordered by the status too, so that no other index fits, however old the statistics are. */
const ofStatus = (status: string): Sql => sql`
  (SELECT ${columns} FROM dlq.dlq_messages t WHERE t.status BETWEEN ${status} AND ${status}
   ORDER BY t.status DESC, t.created_at DESC, t.id DESC LIMIT ${kindWatched}::int)`;

/** The archive is left out: what moves there is counted as a deletion. */
export const watchedMessages: WatchedRows = {
  tables: ['dlq.dlq_messages', 'dlq.dlq_messages_archive'],
  rows: sql`
    (SELECT ${columns} FROM dlq.dlq_messages t ORDER BY t.created_at DESC, t.id DESC LIMIT ${newestWatched}::int)
    UNION ALL ${ofStatus('RETRYING')} UNION ALL ${ofStatus('PENDING')} UNION ALL ${ofStatus('DEAD')}`,
  attention: sql`
    SELECT c.original_topic AS name, LEAST(SUM(c.messages), ${attentionCounted}) AS count FROM dlq.topic_counts c
    WHERE c.status IN ('PENDING', 'DEAD') GROUP BY c.original_topic HAVING SUM(c.messages) > 0`,
};
