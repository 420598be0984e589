import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { Destination, DestinationStatus } from '../destinations.ts';
import type { Count } from './order-filter.ts';

type Settings = Pick<Destination, 'type' | 'isInternal' | 'policy' | 'maxInFlight' | 'hasStatusUrl'>;

export type DescribeDeps = Readonly<{
  db: Queryable;
  destinations: ReadonlyMap<string, Settings>;
  /** Null if this process does not send to the destination. */
  statusOf: (destination: string) => DestinationStatus | null;
}>;

export type DescribedDestination = Readonly<{
  name: string;
  /** Null if it has orders but is not configured in this process. */
  settings: Settings | null;
  status: DestinationStatus | null;
  backlog: Backlog;
}>;

/** Orders of a destination that are waiting or being sent, over all processes. */
export type Backlog = Readonly<{
  destination: string;
  waiting: Count;
  /** Age of the oldest waiting order; null if none is waiting. */
  lagSeconds: number | null;
  /** 99 of 100 waiting orders are younger. */
  lagP99Seconds: number | null;
  inFlight: number;
  /** Dead and not yet resolved. */
  needsAttention: Count;
}>;

/** Every configured destination, and every other one with orders that are not over, by name. */
export async function describeDestinations({
  db,
  destinations,
  statusOf,
}: DescribeDeps): Promise<readonly DescribedDestination[]> {
  const backlogs = await selectBacklogs(db, [...destinations.keys()]);
  return backlogs.map((backlog) => ({
    name: backlog.destination,
    settings: destinations.get(backlog.destination) ?? null,
    status: statusOf(backlog.destination),
    backlog,
  }));
}

/** At most this many waiting orders are counted per destination, with and without an ordering key each. */
const waitingLimit = 10_000;
/** At most this many dead orders are counted per destination. */
const deadLimit = 1000;
/** Destinations come from the configuration, but callers of the SQL function can use any number of other names. */
const destinationLimit = 1000;
/** More than all processes together ever send at once. */
const inFlightLimit = 100_000;

/**
 * Finds the destinations with one index lookup each, and reads waiting orders in the order of an index, so a million
 * waiting orders cost no more than ten thousand.
 */
export async function selectBacklogs(
  db: Queryable,
  destinations: readonly string[],
): Promise<readonly Backlog[]> {
  const rows = await db.query<{
    destination: string;
    waiting: bigint;
    lag_seconds: number | null;
    lag_p99_seconds: number | null;
    in_flight: bigint;
    dead: bigint;
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
        SELECT destination FROM outbox.outbox_orders WHERE status = 'sending' LIMIT ${inFlightLimit}) AS limited
      GROUP BY destination
    )
    SELECT named.destination, waiting.orders AS waiting, COALESCE(sending.orders, 0) AS in_flight,
           (EXTRACT(EPOCH FROM clock_timestamp() - waiting.oldest_at))::float8 AS lag_seconds,
           (EXTRACT(EPOCH FROM clock_timestamp() - waiting.p99_at))::float8 AS lag_p99_seconds, dead.orders AS dead
    FROM named
    LEFT JOIN sending ON sending.destination = named.destination
    CROSS JOIN LATERAL (
      SELECT count(*) AS orders, min(created_at) AS oldest_at,
             percentile_disc(0.01) WITHIN GROUP (ORDER BY created_at) AS p99_at
      FROM (
        (SELECT t.created_at FROM outbox.outbox_orders t
         WHERE t.destination = named.destination AND t.ordering_key IS NULL AND t.status IN ('queued', 'failed')
         ORDER BY t.next_attempt_at, t.id LIMIT ${waitingLimit + 1})
        UNION ALL
        (SELECT t.created_at FROM outbox.outbox_orders t
         WHERE t.destination = named.destination AND t.ordering_key IS NOT NULL AND t.status IN ('queued', 'failed')
         ORDER BY t.ordering_key, t.ordering_seq LIMIT ${waitingLimit + 1})
      ) AS counted
    ) AS waiting
    CROSS JOIN LATERAL (
      SELECT count(*) AS orders FROM (
        SELECT 1 FROM outbox.outbox_orders t
        WHERE t.destination = named.destination AND t.status = 'dead' AND t.resolution IS NULL
        LIMIT ${deadLimit + 1}
      ) AS counted
    ) AS dead
    WHERE named.destination = ANY(${destinations}::text[])
      OR waiting.orders > 0 OR sending.orders > 0 OR dead.orders > 0
    ORDER BY named.destination`);
  return rows.map((row) => ({
    destination: row.destination,
    waiting: countUpTo(waitingLimit, row.waiting),
    lagSeconds: row.lag_seconds === null ? null : Math.max(0, row.lag_seconds),
    lagP99Seconds: row.lag_p99_seconds === null ? null : Math.max(0, row.lag_p99_seconds),
    inFlight: Number(row.in_flight),
    needsAttention: countUpTo(deadLimit, row.dead),
  }));
}

function countUpTo(limit: number, counted: bigint): Count {
  const isEstimate = counted > BigInt(limit);
  return { total: isEstimate ? limit : Number(counted), isEstimate };
}
