import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';

/** The time of the database: what is read after it is at least as new. */
export async function readClock(db: Queryable): Promise<Date> {
  const [row] = await db.query<{ at: Date }>(sql`SELECT clock_timestamp() AS at`);
  if (row === undefined) throw new Error('the clock was not read');
  return row.at;
}
