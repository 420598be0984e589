import { sql, type Sql } from '../../platform/postgres/sql.ts';
import {
  attentionCounted,
  kindWatched,
  newestWatched,
  type WatchedRows,
} from '../../platform/work/changes/watched-rows.ts';

const columns = sql`t.id::text AS id, t.destination AS name, t.xmin AS xid`;

/** Ordered by the status too, so that no other index fits, however old the statistics are. */
const ofStatus = (status: string): Sql => sql`
  (SELECT ${columns} FROM outbox.outbox_orders t WHERE t.status BETWEEN ${status} AND ${status} AND t.status <> 'sent'
   ORDER BY t.status DESC, t.id DESC LIMIT ${kindWatched}::int)`;

export const watchedOrders: WatchedRows = {
  tables: ['outbox.outbox_orders', 'outbox.outbox_orders_archive'],
  rows: sql`
    (SELECT ${columns} FROM outbox.outbox_orders t ORDER BY t.id DESC LIMIT ${newestWatched}::int)
    UNION ALL ${ofStatus('sending')} UNION ALL ${ofStatus('failed')} UNION ALL ${ofStatus('dead')}`,
  attention: sql`
    SELECT t.name, count(*) AS count FROM (
      SELECT o.destination AS name FROM outbox.outbox_orders o
      WHERE o.status = 'dead' AND o.resolution IS NULL ORDER BY o.destination, o.id LIMIT ${attentionCounted}::int
    ) AS t GROUP BY t.name`,
};
