import type { Queryable } from '../../platform/postgres/database.ts';
import { rowsOf } from '../../platform/postgres/rows-of.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { holdsItsKey } from './orders-table.ts';

/** Those of the ordering keys that have orders to the destination which are neither sent nor decided about. */
export async function unsentKeys(
  db: Queryable,
  destination: string,
  orderingKeys: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await db.query<{ key: string }>(sql`
    SELECT asked.key FROM ${rowsOf(sql`asked`, orderingKeys, [[sql`key`, sql`text[]`, (key) => key]])}
    WHERE EXISTS (
      SELECT 1 FROM outbox.outbox_orders o
      WHERE o.destination = ${destination} AND o.ordering_key = asked.key AND ${holdsItsKey(sql`o`)})`);
  return new Set(rows.map(({ key }) => key));
}
