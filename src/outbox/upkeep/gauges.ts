import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { createBoundedLabels } from '../../platform/telemetry/bounded-labels.ts';
import type { Metrics } from '../../platform/telemetry/metrics.ts';
import type { Gauges } from '../../platform/work/gauges.ts';

/** The rate is null while the destination is not throttled. */
export type DestinationState = Readonly<{ destination: string; rate: number | null; isOpen: boolean }>;

const quantiles = [0.5, 0.95, 0.99] as const;
const measuredRows = 10_000;
/** Per destination: a thousand means a thousand or more. */
const countedRows = 1000;

/** Nothing costs more when millions of orders wait: counts use an index and stop at a limit. */
export function orderGauges(
  metrics: Metrics,
  { db, states }: Readonly<{ db: Queryable; states: () => readonly DestinationState[] }>,
): Gauges {
  const gauges = registerGauges(metrics);
  return {
    gauges: Object.values(gauges),
    async measure() {
      const inflight = await countSending(db);
      const { lags, oldestAt } = await measureLag(db);
      const counts = await countByDestination(db);
      return () => {
        gauges.inflight.set(inflight);
        quantiles.forEach((quantile, i) => gauges.lag.set({ quantile: String(quantile) }, lags[i] ?? 0));
        if (oldestAt !== null) gauges.oldest.set(oldestAt);
        const labels = createBoundedLabels();
        for (const { waiting, dead, ...row } of counts) {
          const destination = labels.labelOf(row.destination);
          gauges.orders.inc({ destination, status: 'waiting' }, waiting);
          gauges.orders.inc({ destination, status: 'dead' }, dead);
        }
        gauges.internalDead.set(sumOf(counts.filter(isInternal).map(({ dead }) => dead)));
        for (const { rate, isOpen, ...state } of states()) {
          const destination = labels.labelOf(state.destination);
          gauges.circuitOpen.inc({ destination }, isOpen ? 1 : 0);
          if (rate !== null) gauges.throttle.inc({ destination }, rate);
        }
      };
    },
  };
}

function registerGauges(metrics: Metrics) {
  return {
    inflight: metrics.gauge({
      name: 'outbox_inflight',
      help: 'Orders that are being sent; exported by one replica.',
    }),
    lag: metrics.gauge({
      name: 'outbox_lag_seconds',
      help: `Age of waiting orders, of at most the ${measuredRows} oldest; exported by one replica.`,
      labelNames: ['quantile'],
    }),
    oldest: metrics.gauge({
      name: 'outbox_oldest_waiting_timestamp_seconds',
      help: 'When the oldest of these orders was created; absent if none waits; exported by one replica.',
    }),
    orders: metrics.gauge({
      name: 'outbox_orders',
      help: `Waiting orders (queued or failed), and dead orders that need attention, counted up to ${countedRows}; exported by one replica.`,
      labelNames: ['destination', 'status'],
    }),
    internalDead: metrics.gauge({
      name: 'outbox_internal_dead',
      help: 'Dead orders of the system itself; exported by one replica.',
    }),
    throttle: metrics.gauge({
      name: 'outbox_throttle',
      help: 'Orders per second to a throttled destination, absent while it is not throttled; exported by one replica.',
      labelNames: ['destination'],
    }),
    circuitOpen: metrics.gauge({
      name: 'outbox_circuit_open',
      help: '1 while the circuit of a destination is open; for `other`, the number of open circuits; exported by one replica.',
      labelNames: ['destination'],
    }),
  };
}

async function countSending(db: Queryable): Promise<number> {
  const [row] = await db.query<{ count: number }>(
    sql`SELECT count(*)::int AS count FROM outbox.outbox_orders WHERE status = 'sending'`,
  );
  return row?.count ?? 0;
}

/**
 * The oldest by `next_attempt_at`, because an index has that order: the creation time of an order that was never
 * tried, the end of the backoff of one that failed. By creation time alone, all sent orders would have to be read
 * first. Without waiting orders the lag is 0.
 */
async function measureLag(
  db: Queryable,
): Promise<Readonly<{ lags: readonly number[]; oldestAt: number | null }>> {
  const [row] = await db.query<{ lags: readonly number[] | null; oldest_at: number | null }>(sql`
    WITH oldest AS (
      SELECT created_at FROM (
        (SELECT created_at, next_attempt_at FROM outbox.outbox_orders WHERE status = 'queued'
         ORDER BY next_attempt_at LIMIT ${measuredRows})
        UNION ALL
        (SELECT created_at, next_attempt_at FROM outbox.outbox_orders WHERE status = 'failed'
         ORDER BY next_attempt_at LIMIT ${measuredRows})
      ) AS waiting
      ORDER BY next_attempt_at
      LIMIT ${measuredRows}
    )
    SELECT percentile_cont(${quantiles}::float8[])
             WITHIN GROUP (ORDER BY GREATEST(date_part('epoch', now() - created_at), 0)) AS lags,
           date_part('epoch', min(created_at) FILTER (WHERE isfinite(created_at))) AS oldest_at
    FROM oldest`);
  return { lags: row?.lags ?? quantiles.map(() => 0), oldestAt: row?.oldest_at ?? null };
}

type DestinationCounts = Readonly<{ destination: string; waiting: number; dead: number }>;

/**
 * One index lookup per destination finds them all. Each count reads in the order of the partial index that has just
 * these rows: without ORDER BY the planner scans the table.
 */
async function countByDestination(db: Queryable): Promise<readonly DestinationCounts[]> {
  return db.query<DestinationCounts>(sql`
    WITH RECURSIVE found AS (
      (SELECT destination FROM outbox.outbox_orders ORDER BY destination LIMIT 1)
      UNION ALL
      SELECT (SELECT o.destination FROM outbox.outbox_orders o
              WHERE o.destination > found.destination ORDER BY o.destination LIMIT 1)
      FROM found WHERE found.destination IS NOT NULL
    )
    SELECT found.destination, LEAST(free.count + keyed.count, ${countedRows})::int AS waiting, dead.count::int AS dead
    FROM found
    CROSS JOIN LATERAL (
      SELECT count(*) FROM (
        SELECT 1 FROM outbox.outbox_orders o
        WHERE o.destination = found.destination AND o.ordering_key IS NULL AND o.status IN ('queued', 'failed')
        ORDER BY o.next_attempt_at, o.id LIMIT ${countedRows}) AS counted
    ) AS free
    CROSS JOIN LATERAL (
      SELECT count(*) FROM (
        SELECT 1 FROM outbox.outbox_orders o
        WHERE o.destination = found.destination AND o.ordering_key IS NOT NULL AND o.status IN ('queued', 'failed')
        ORDER BY o.ordering_key, o.ordering_seq LIMIT ${countedRows}) AS counted
    ) AS keyed
    CROSS JOIN LATERAL (
      SELECT count(*) FROM (
        SELECT 1 FROM outbox.outbox_orders o
        WHERE o.destination = found.destination AND o.status = 'dead' AND o.resolution IS NULL
        ORDER BY o.id LIMIT ${countedRows}) AS counted
    ) AS dead
    WHERE found.destination IS NOT NULL`);
}

function isInternal({ destination }: DestinationCounts): boolean {
  return destination.startsWith('_');
}

function sumOf(counts: readonly number[]): number {
  return counts.reduce((sum, count) => sum + count, 0);
}
