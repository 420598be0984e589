import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';

/** The destinations among `names` that have dead orders without a resolution. */
export async function destinationsWithDead(
  db: Queryable,
  names: readonly string[],
): Promise<readonly string[]> {
  const rows = await db.query<{ name: string }>(sql`
    SELECT name FROM unnest(${names}::text[]) AS name
    WHERE EXISTS (
      SELECT 1 FROM outbox.outbox_orders o
      WHERE o.destination = name AND o.status = 'dead' AND o.resolution IS NULL)`);
  return rows.map(({ name }) => name);
}
