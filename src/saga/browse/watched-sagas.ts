import { sql, type Sql } from '../../platform/postgres/sql.ts';
import {
  attentionCounted,
  kindWatched,
  newestWatched,
  type WatchedRows,
} from '../../platform/work/changes/watched-rows.ts';

const newest = (where: Sql, limit: number): Sql => sql`
  (SELECT t.id::text AS id, t.workflow_name::text AS name, t.xmin AS xid FROM saga.saga_states t
   WHERE ${where} ORDER BY t.created_at DESC LIMIT ${limit}::int)`;

export const watchedSagas: WatchedRows = {
  tables: ['saga.saga_states', 'saga.saga_states_archive'],
  rows: sql`${newest(sql`true`, newestWatched)}
    UNION ALL ${newest(sql`t.status IN ('STARTED', 'RUNNING', 'COMPENSATING')`, kindWatched)}
    UNION ALL ${newest(sql`t.needs_attention`, kindWatched)}`,
  attention: sql`
    SELECT t.name, count(*) AS count FROM (
      SELECT s.workflow_name::text AS name FROM saga.saga_states s
      WHERE s.needs_attention ORDER BY s.created_at DESC, s.id LIMIT ${attentionCounted}::int
    ) AS t GROUP BY t.name`,
};
