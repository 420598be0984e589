import { addInternalOrders } from '../../src/outbox/index.ts';
import type { Database, Queryable } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';

/** For tests of modules that add internal orders without importing the outbox. */
export { destinationsWithDead } from '../../src/outbox/index.ts';

export async function addInternalOrder(
  tx: Queryable,
  order: Parameters<typeof addInternalOrders>[1][number],
): Promise<void> {
  await addInternalOrders(tx, [order]);
}

export type InternalOrder<Request> = Readonly<{ destination: string; key: string; request: Request }>;

/** In the order in which they were added. */
export async function internalOrders<Request>(db: Database): Promise<readonly InternalOrder<Request>[]> {
  return db.query<InternalOrder<Request>>(sql`
    SELECT destination, idempotency_key AS key, request_json AS request
    FROM outbox.outbox_orders WHERE starts_with(destination, '_') ORDER BY id`);
}
