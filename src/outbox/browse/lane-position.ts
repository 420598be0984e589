import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { LanePosition, Order } from '../domain/order-details.ts';
import { isUnfinished } from '../orders-table.ts';

const countedBehind = 1000;

/** Null without an ordering key, and once the order is sent or resolved. */
export async function findLanePosition(db: Queryable, order: Order): Promise<LanePosition | null> {
  const { orderingKey, orderingSeq, archivedAt } = order;
  const hasEnded = order.status === 'sent' || order.resolution !== null || archivedAt !== null;
  if (orderingKey === null || orderingSeq === null || hasEnded) return null;
  const lane = sql`t.destination = ${order.destination} AND t.ordering_key = ${orderingKey}`;
  const [row] = await db.query<{ first_id: bigint | null; behind: bigint }>(sql`
    SELECT (SELECT t.id FROM outbox.outbox_orders t
            WHERE ${lane} AND ${isUnfinished(sql`t`)} AND t.ordering_seq < ${orderingSeq}
            ORDER BY t.ordering_seq LIMIT 1) AS first_id,
           (SELECT count(*) FROM (
              SELECT 1 FROM outbox.outbox_orders t
              WHERE ${lane} AND ${isUnfinished(sql`t`)} AND t.ordering_seq > ${orderingSeq}
              ORDER BY t.ordering_seq LIMIT ${countedBehind + 1}) AS counted) AS behind`);
  const behind = Number(row?.behind ?? 0n);
  return {
    blockedById: row?.first_id ?? null,
    behind: Math.min(behind, countedBehind),
    isLowerBound: behind > countedBehind,
  };
}
