import type { Queryable } from '../../platform/postgres/database.ts';
import { unnestRows } from '../../platform/postgres/unnest-rows.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { isUnfinished } from '../orders-table.ts';

/** The ordering keys with orders to the destination that are neither sent nor resolved. */
export async function unsentKeys(
  db: Queryable,
  destination: string,
  orderingKeys: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await db.query<{ key: string }>(sql`
    SELECT asked.key FROM ${unnestRows(sql`asked`, orderingKeys, [[sql`key`, sql`text[]`, (key) => key]])}
    WHERE EXISTS (
      SELECT 1 FROM outbox.outbox_orders o
      WHERE o.destination = ${destination} AND o.ordering_key = asked.key AND ${isUnfinished(sql`o`)})`);
  return new Set(rows.map(({ key }) => key));
}
