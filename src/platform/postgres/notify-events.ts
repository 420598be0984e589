import type { Queryable } from './database.ts';
import { sql } from './sql.ts';

const keepDays = 30;
const batch = 5000;

/**
 * Nobody is told of what is this old; the rows would only pile up where nobody is to be told at all. What is held for
 * a notifier that is no longer configured goes as well.
 */
export async function forgetOldNotifyEvents(db: Queryable): Promise<void> {
  for (;;) {
    const [row] = await db.query<{ count: number }>(sql`
      WITH old AS MATERIALIZED (
        SELECT id FROM platform.notify_events
        WHERE at < clock_timestamp() - ${keepDays} * interval '1 day'
        ORDER BY at
        LIMIT ${batch}
        FOR UPDATE SKIP LOCKED
      ), gone AS (
        DELETE FROM platform.notify_events e USING old WHERE e.id = old.id RETURNING 1
      )
      SELECT count(*)::int AS count FROM gone`);
    if ((row?.count ?? 0) < batch) break;
  }
  await db.query(sql`
    DELETE FROM platform.notify_groups WHERE told_at < clock_timestamp() - ${keepDays} * interval '1 day'`);
}
