import { sleep } from '../../kernel/clock.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { Metrics } from '../../platform/telemetry/metrics.ts';

/**
 * Figures about the database are the same in every replica, so only the holder of the lease exports them: two
 * replicas would double every sum. None of them costs more when millions wait: what is counted is counted up to a
 * bound, by an index.
 */
export type GlobalFigures = Readonly<{ export(held: AbortSignal): Promise<void> }>;

/** What all replicas know of a destination; the rate is null where nothing throttles it. */
export type DestinationState = Readonly<{ destination: string; rate: number | null; isOpen: boolean }>;

const everyMs = 5000;
const quantiles = [0.5, 0.95, 0.99] as const;
const measuredRows = 10_000;
/** Per destination: a thousand stands for a thousand or more. */
const countedRows = 1000;

export function createGlobalFigures(
  metrics: Metrics,
  { db, states }: Readonly<{ db: Queryable; states: () => Promise<readonly DestinationState[]> }>,
): GlobalFigures {
  const gauges = createGauges(metrics);

  const clear = (): void => {
    for (const gauge of Object.values(gauges)) gauge.reset();
    // Without labels a reset leaves a zero, which a sum over the replicas would bear and an average would not.
    gauges.inflight.remove();
    gauges.internalDead.remove();
  };

  clear();

  const refresh = async (): Promise<void> => {
    const inflight = await countSending(db);
    const lags = await measureLag(db);
    const counts = await countByDestination(db);
    const destinations = await states();
    // From here on without a pause, so that nobody reads half of a round.
    clear();
    gauges.inflight.set(inflight);
    quantiles.forEach((quantile, i) => gauges.lag.set({ quantile: String(quantile) }, lags[i] ?? 0));
    for (const { destination, waiting, dead } of counts) {
      gauges.orders.set({ destination, status: 'waiting' }, waiting);
      gauges.orders.set({ destination, status: 'dead' }, dead);
    }
    gauges.internalDead.set(sumOf(counts.filter(isInternal).map(({ dead }) => dead)));
    for (const { destination, rate, isOpen } of destinations) {
      gauges.circuitOpen.set({ destination }, isOpen ? 1 : 0);
      if (rate !== null) gauges.throttle.set({ destination }, rate);
    }
  };

  return {
    async export(held) {
      try {
        while (!held.aborted) {
          await refresh();
          await sleep(everyMs, held);
        }
      } finally {
        clear();
      }
    },
  };
}

function createGauges(metrics: Metrics) {
  return {
    inflight: metrics.gauge({
      name: 'outbox_inflight',
      help: 'Orders that are being sent; exported by one replica.',
    }),
    lag: metrics.gauge({
      name: 'outbox_lag_seconds',
      help: `The age of waiting orders, of at most the ${measuredRows} oldest; exported by one replica.`,
      labelNames: ['quantile'],
    }),
    orders: metrics.gauge({
      name: 'outbox_orders',
      help: `Orders that wait (queued or failed), and that are dead and need a person, counted up to ${countedRows}; exported by one replica.`,
      labelNames: ['destination', 'status'],
    }),
    internalDead: metrics.gauge({
      name: 'outbox_internal_dead',
      help: 'Orders of the system itself that are dead; exported by one replica.',
    }),
    throttle: metrics.gauge({
      name: 'outbox_throttle',
      help: 'Orders per second that a destination is throttled to, absent where it is not; exported by one replica.',
      labelNames: ['destination'],
    }),
    circuitOpen: metrics.gauge({
      name: 'outbox_circuit_open',
      help: '1 while the circuit of a destination is open; exported by one replica.',
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
 * The oldest are those whose turn came first, because an index has them in that order: for an order that was never
 * tried it is the time of its creation, for one that failed the end of its backoff. By the time of creation alone,
 * all that is sent and still kept would have to be read first. Where nothing waits there is no lag.
 */
async function measureLag(db: Queryable): Promise<readonly number[]> {
  const [row] = await db.query<{ lags: readonly number[] | null }>(sql`
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
             WITHIN GROUP (ORDER BY GREATEST(date_part('epoch', now() - created_at), 0)) AS lags
    FROM oldest`);
  return row?.lags ?? quantiles.map(() => 0);
}

type DestinationCounts = Readonly<{ destination: string; waiting: number; dead: number }>;

/**
 * One look at an index per destination finds them all. Each is counted in the order of the index that holds only
 * what is counted: without an order the planner reads the table instead, from its beginning.
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
