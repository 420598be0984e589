import type { Queryable } from './database.ts';
import { sql } from './sql.ts';

const keepDays = 30;

/** Nobody is told of what is this old; the rows would only pile up. */
export async function forgetOldNotifyEvents(db: Queryable): Promise<void> {
  await db.query(sql`
    DELETE FROM platform.notify_events WHERE at < clock_timestamp() - ${keepDays} * interval '1 day'`);
}
