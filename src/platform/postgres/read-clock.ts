import type { Queryable } from './database.ts';
import { sql } from './sql.ts';

/** The time of the database: what is read after it is at least as new. As a number, whatever the session's DateStyle. */
export async function readClock(db: Queryable): Promise<Date> {
  const [row] = await db.query<{ at: number }>(
    sql`SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::float8 AS at`,
  );
  if (row === undefined) throw new Error('the clock was not read');
  return new Date(row.at);
}
