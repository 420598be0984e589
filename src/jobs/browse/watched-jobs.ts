import { sql, type Sql } from '../../platform/postgres/sql.ts';
import {
  attentionCounted,
  kindWatched,
  newestWatched,
  type WatchedRows,
} from '../../platform/work/changes/watched-rows.ts';

const some = (rest: Sql): Sql => sql`
  (SELECT t.job_id::text AS id, t.queue::text AS name, t.xmin AS xid FROM jobs.job_queue t ${rest})`;

export const watchedJobs: WatchedRows = {
  tables: ['jobs.job_queue'],
  rows: sql`${some(sql`ORDER BY t.job_id DESC LIMIT ${newestWatched}::int`)}
    UNION ALL ${some(sql`WHERE t.status = 'running' ORDER BY t.queue, t.lease_epoch LIMIT ${kindWatched}::int`)}
    UNION ALL ${some(sql`WHERE t.status = 'failed' ORDER BY t.job_id DESC LIMIT ${kindWatched}::int`)}
    UNION ALL ${some(sql`WHERE t.status = 'dead_letter' ORDER BY t.job_id DESC LIMIT ${kindWatched}::int`)}`,
  attention: sql`
    SELECT t.name, count(*) AS count FROM (
      SELECT j.queue::text AS name FROM jobs.job_queue j
      WHERE j.status = 'dead_letter' AND j.resolution IS NULL ORDER BY j.queue, j.job_id LIMIT ${attentionCounted}::int
    ) AS t GROUP BY t.name`,
};
