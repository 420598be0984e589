import type { Backoff } from '../kernel/backoff.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Service } from '../kernel/service.ts';
import { createReaper } from '../platform/work/reaper.ts';
import type { Broker } from '../platform/broker/port.ts';
import type { MaskPayloads, PayloadMasks } from '../platform/http/access/payload-masks.ts';
import type { HttpApp } from '../platform/http/http-app.ts';
import type { HealthCheck } from '../platform/http/readiness.ts';
import type { Database } from '../platform/postgres/database.ts';
import type { MigrationSource } from '../platform/postgres/migrate.ts';
import type { Replica } from '../platform/work/replicas.ts';
import { createGauges } from '../platform/work/gauges.ts';
import { notify, type Wake } from '../platform/work/wake.ts';
import { outboxChannel } from './channel.ts';
import { sql } from '../platform/postgres/sql.ts';
import { orders } from './orders-table.ts';
import { hasRow, type Worker } from '../platform/work/work.ts';
import type { Logger } from '../platform/telemetry/logger.ts';
import type { Metrics } from '../platform/telemetry/metrics.ts';
import { addAcceptRoutes } from './accept/routes.ts';
import { findReplay, insertOrder } from './accept/insert-order.ts';
import { createOrderFinder } from './browse/find-items.ts';
import { findOrder, getOrderDetails } from './browse/find-order.ts';
import { addBrowseRoutes } from './browse/routes.ts';
import { addDecideRoutes } from './decide/routes.ts';
import type { DestinationSettings } from './domain/destination-settings.ts';
import type { Destination, DestinationStatus } from './destinations.ts';
import { openDestination } from './deliver/senders/open-destination.ts';
import type { OpenDestination } from './deliver/senders/port.ts';
import { createDelivery } from './deliver/delivery-services.ts';
import { destinationsCheck } from './deliver/destinations-check.ts';
import { reapOrders } from './deliver/reap-orders.ts';
import { orderGauges } from './upkeep/gauges.ts';
import { createOrderRetention } from './upkeep/retention.ts';

export { addInternalOrders } from './accept/add-internal-orders.ts';
export { destinationsWithDead } from './browse/destinations-with-dead.ts';
export { ordersForInbox } from './browse/orders-for-inbox.ts';
export { watchedOrders } from './browse/watched-orders.ts';
export { unsentKeys } from './upkeep/unsent-keys.ts';
export type { DestinationSettings };

export type OutboxOptions = Readonly<{
  batchSize: number;
  parallelism: number;
  retryMax: number;
  idleSleepMs: number;
  leaseMs: number;
  ledgerTtlMs: number;
  auditRetentionMs: number;
  backoff: Backoff;
  probe: Readonly<{ initialMs: number; maxMs: number }>;
  destinations: readonly DestinationSettings[];
  /** Used by the system itself: `_saga_events`, `_notify_ops`. */
  internalDestinations: readonly DestinationSettings[];
}>;

export type OutboxDeps = Readonly<{
  db: Database;
  worker: Worker;
  broker: Broker | null;
  wake: Wake;
  replica: Pick<Replica, 'workers'>;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  maskPayloads: MaskPayloads;
  options: OutboxOptions;
}>;

export type Outbox = Readonly<{
  addRoutes(app: HttpApp): void;
  /** Orders, by number, key or trace. */
  find: ReturnType<typeof createOrderFinder>;
  /** Sends orders to their destinations. */
  delivery: readonly Service[];
  /** Tracks throttles and circuits; runs in every process that sends or shows orders. */
  watch: Service;
  /** Releases orders of lost workers; runs in every process that sends or shows orders. */
  reaper: Service;
  /** What one replica does for all: gauges and retention. */
  maintenance: readonly Service[];
  checks: readonly HealthCheck[];
}>;

export const outboxMigrations: MigrationSource = {
  slice: 'outbox',
  directory: new URL('migrations/', import.meta.url),
};

export function createOutbox(deps: OutboxDeps): Outbox {
  const { db, options } = deps;
  const log = deps.logger.child({ slice: 'outbox' });
  const destinations = openDestinations(deps);
  const delivery = createDelivery({ ...deps, ...options, log, destinations });
  const { statusOf } = delivery;

  const masking = deps.maskPayloads('destinations', 'outbox:payloads:view');

  return {
    addRoutes: (app) =>
      addOutboxRoutes(app, { db, destinations, statusOf, ledgerTtlMs: options.ledgerTtlMs, masking }),
    find: createOrderFinder({ db, masking }),
    delivery: delivery.services,
    watch: delivery.watch,
    reaper: createReaper({
      slice: 'outbox',
      worker: deps.worker,
      clock: deps.clock,
      shortestLeaseMs: options.leaseMs,
      hasLeased: () => hasRow(db, orders, sql`t.status = 'sending'`),
      async reap() {
        const count = await reapOrders({ ...options, db, destinations });
        if (count > 0) for (const name of destinations.keys()) await notify(db, outboxChannel(name));
        return count;
      },
      onReaped: (count) => log.warn({ count }, 'released orders of lost workers'),
      onError: (error) => log.warn({ err: error }, 'reaper failed'),
    }),
    maintenance: createMaintenance(deps, { log, destinations: [...destinations.keys()], statusOf }),
    checks: [destinationsCheck(db, destinations, statusOf)],
  };
}

/** What one process does for all: gauges and retention. */
function createMaintenance(
  { db, worker, metrics, options }: OutboxDeps,
  {
    log,
    destinations,
    statusOf,
  }: Readonly<{ log: Logger; destinations: readonly string[]; statusOf: StatusOf }>,
): readonly Service[] {
  const gauges = orderGauges(metrics, {
    db,
    states: () =>
      destinations.flatMap((destination) => {
        const snapshot = statusOf(destination)?.snapshot;
        if (snapshot === undefined) return [];
        return [{ destination, rate: snapshot.rate, isOpen: snapshot.circuit.state === 'open' }];
      }),
  });
  return [
    createGauges(worker, { name: 'outbox.gauges', ...gauges, log }),
    createOrderRetention(worker, { db, log, options }),
  ];
}

type StatusOf = (destination: string) => DestinationStatus | null;

export type OutboxRouteDeps = Readonly<{
  db: Database;
  /** Every configured destination, including the internal ones. */
  destinations: ReadonlyMap<string, Destination>;
  statusOf: StatusOf;
  ledgerTtlMs: number;
  masking: PayloadMasks;
}>;

export function addOutboxRoutes(app: HttpApp, deps: OutboxRouteDeps): void {
  const { db } = deps;
  addAcceptRoutes(app, deps);
  addBrowseRoutes(app, deps);
  addDecideRoutes(app, {
    ...deps,
    insertOrder,
    findReplay: (order, caller) => findReplay(db, order, caller),
    findOrder: (id) => findOrder(db, id),
    getOrderDetails: (id) => getOrderDetails(db, id),
  });
}

function openDestinations({ broker, options }: OutboxDeps): ReadonlyMap<string, OpenDestination> {
  const { retryMax, backoff } = options;
  const open = (settings: DestinationSettings, isInternal: boolean): [string, OpenDestination] => [
    settings.name,
    openDestination(settings, { broker, retryMax, backoff, isInternal }),
  ];
  return new Map([
    ...options.destinations.map((settings) => open(settings, false)),
    ...options.internalDestinations.map((settings) => open(settings, true)),
  ]);
}
