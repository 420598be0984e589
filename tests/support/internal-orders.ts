import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';

/** For tests of those who add orders of the system itself without knowing the outbox. */
export { addInternalOrder, destinationsWithDead } from '../../src/outbox/index.ts';

export type InternalOrder<Request> = Readonly<{ destination: string; key: string; request: Request }>;

/** In the order in which they were added. */
export async function internalOrders<Request>(db: Database): Promise<readonly InternalOrder<Request>[]> {
  return db.query<InternalOrder<Request>>(sql`
    SELECT destination, idempotency_key AS key, request_json AS request
    FROM outbox.outbox_orders WHERE starts_with(destination, '_') ORDER BY id`);
}
