import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { Backlog } from '../usecase/reading-ports.ts';

/** Of each destination and lane, no more than these waiting orders are looked at. */
const waitingLimit = 10_000;
/** Destinations come from configurations; a caller's SQL could name any number of others. */
const destinationLimit = 1000;
/** More than all processes together ever have under way. */
const inFlightLimit = 100_000;

/**
 * What waits for each destination, and what is under way to it. One look at an index finds the next destination,
 * and each lane is read in the order of its own index, so a million waiting orders cost as much as ten thousand.
 */
export async function selectBacklogs(
  db: Queryable,
  destinations: readonly string[],
): Promise<readonly Backlog[]> {
  const rows = await db.query<{
    destination: string;
    waiting: bigint;
    lag_seconds: number | null;
    in_flight: bigint;
  }>(sql`
    WITH RECURSIVE found AS (
      (SELECT destination FROM outbox.outbox_orders ORDER BY destination LIMIT 1)
      UNION ALL
      SELECT (SELECT o.destination FROM outbox.outbox_orders o
              WHERE o.destination > found.destination ORDER BY o.destination LIMIT 1)
      FROM found WHERE found.destination IS NOT NULL
    ), named AS MATERIALIZED (
      SELECT unnest(${destinations}::text[]) AS destination
      UNION
      SELECT destination FROM (SELECT destination FROM found LIMIT ${destinationLimit}) AS first
      WHERE destination IS NOT NULL
    ), sending AS MATERIALIZED (
      SELECT destination, count(*) AS orders FROM (
        SELECT destination FROM outbox.outbox_orders WHERE status = 'sending' LIMIT ${inFlightLimit}) AS under_way
      GROUP BY destination
    )
    SELECT named.destination, waiting.orders AS waiting, COALESCE(sending.orders, 0) AS in_flight,
           (EXTRACT(EPOCH FROM clock_timestamp() - waiting.oldest_at))::float8 AS lag_seconds
    FROM named
    LEFT JOIN sending ON sending.destination = named.destination
    CROSS JOIN LATERAL (
      SELECT count(*) AS orders, min(created_at) AS oldest_at FROM (
        (SELECT t.created_at FROM outbox.outbox_orders t
         WHERE t.destination = named.destination AND t.ordering_key IS NULL AND t.status IN ('queued', 'failed')
         ORDER BY t.next_attempt_at, t.id LIMIT ${waitingLimit + 1})
        UNION ALL
        (SELECT t.created_at FROM outbox.outbox_orders t
         WHERE t.destination = named.destination AND t.ordering_key IS NOT NULL AND t.status IN ('queued', 'failed')
         ORDER BY t.ordering_key, t.ordering_seq LIMIT ${waitingLimit + 1})
      ) AS lanes
    ) AS waiting
    WHERE named.destination = ANY(${destinations}::text[]) OR waiting.orders > 0 OR sending.orders > 0
    ORDER BY named.destination`);
  return rows.map((row) => {
    const isEstimate = row.waiting > BigInt(waitingLimit);
    return {
      destination: row.destination,
      waiting: { total: isEstimate ? waitingLimit : Number(row.waiting), isEstimate },
      lagSeconds: row.lag_seconds === null ? null : Math.max(0, row.lag_seconds),
      inFlight: Number(row.in_flight),
    };
  });
}
