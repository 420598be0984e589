import type { Backoff } from '../kernel/backoff.ts';
import type { Clock } from '../kernel/clock.ts';
import { createLoop } from '../kernel/loop.ts';
import type { Service } from '../kernel/service.ts';
import type { Broker } from '../platform/broker/port.ts';
import type { HttpApp } from '../platform/http/http-app.ts';
import type { HealthCheck } from '../platform/http/readiness.ts';
import type { Database } from '../platform/postgres/database.ts';
import type { MigrationSource } from '../platform/postgres/migrate.ts';
import { createNamedLease } from '../platform/postgres/named-lease.ts';
import type { Wake } from '../platform/postgres/wake.ts';
import type { Worker } from '../platform/postgres/work.ts';
import type { Logger } from '../platform/telemetry/logger.ts';
import type { Metrics } from '../platform/telemetry/metrics.ts';
import { addOutboxRoutes } from './adapter/http-routes.ts';
import type { DestinationSettings } from './domain/destination-settings.ts';
import { createDestination } from './infra/create-destination.ts';
import { createDelivery } from './infra/delivery-services.ts';
import { destinationsCheck } from './infra/destinations-check.ts';
import { createGlobalFigures } from './infra/global-figures.ts';
import { createPostgresDeliveryStore } from './infra/postgres-delivery-store.ts';
import { createPostgresDestinationState } from './infra/postgres-destination-state.ts';
import { createPostgresOrderReader } from './infra/postgres-order-reader.ts';
import { createPostgresOrderStore } from './infra/postgres-order-store.ts';
import { createPostgresRetention } from './infra/postgres-retention.ts';
import { createRetentionService } from './infra/retention-service.ts';
import { createSendMetrics } from './infra/send-metrics.ts';
import type { Destination } from './usecase/ports.ts';

/** For whoever adds orders of the system itself. */
export { addInternalOrder, addInternalOrders } from './infra/add-internal-order.ts';
export { destinationsWithDead } from './infra/destinations-with-dead.ts';
export { unsentKeys } from './infra/unsent-keys.ts';
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
  /** Made by the system itself: `_saga_events`, `_notify_ops`. */
  internalDestinations: readonly DestinationSettings[];
}>;

export type OutboxDeps = Readonly<{
  db: Database;
  worker: Worker;
  broker: Broker | null;
  wake: Wake;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  options: OutboxOptions;
}>;

export type Outbox = Readonly<{
  addRoutes(app: HttpApp): void;
  /** Sends orders to their destinations. */
  delivery: readonly Service[];
  /** Knows of throttles and circuits; in every process that sends or shows orders. */
  watch: Service;
  /** Ends the attempts of lost workers; in every process that sends or shows orders. */
  reaper: Service;
  /** What one replica does for all: figures, retention. */
  maintenance: readonly Service[];
  checks: readonly HealthCheck[];
}>;

export const outboxMigrations: MigrationSource = {
  slice: 'outbox',
  directory: new URL('infra/migrations/', import.meta.url),
};

const reapEveryMs = 1000;

export function createOutbox(deps: OutboxDeps): Outbox {
  const { db, worker, options } = deps;
  const log = deps.logger.child({ slice: 'outbox' });
  const destinations = openDestinations(deps);
  const store = createPostgresDeliveryStore(db, worker, {
    ...options,
    ownRetryMax: new Map([...destinations.values()].map(({ name, policy }) => [name, policy.retryMax])),
    askable: [...destinations.values()].filter(({ askStatus }) => askStatus !== null).map(({ name }) => name),
    onSettleRetry: (error) => log.warn({ err: error }, 'settling is tried again'),
  });
  const states = createPostgresDestinationState(db);
  const reader = createPostgresOrderReader(db);
  const delivery = createDelivery({
    ...options,
    db,
    clock: deps.clock,
    wake: deps.wake,
    log,
    store,
    states,
    destinations,
    sends: createSendMetrics(deps.metrics, log),
  });

  const figures = createGlobalFigures(deps.metrics, {
    db,
    states: async () => [...destinations.keys()].flatMap((name) => delivery.stateOf(name)),
  });
  const onLeaseError = (error: unknown): void => log.warn({ err: error }, 'maintenance failed');

  return {
    addRoutes: (app) =>
      addOutboxRoutes(app, {
        store: createPostgresOrderStore(db, options),
        reader,
        destinations,
        gateOf: delivery.gateOf,
      }),
    delivery: delivery.services,
    watch: delivery.watch,
    reaper: createLoop({
      name: 'outbox reaper',
      everyMs: reapEveryMs,
      async run() {
        const reaped = await store.reap();
        if (reaped > 0) log.warn({ count: reaped }, 'attempts of lost workers were ended');
      },
      onError: (error) => log.warn({ err: error }, 'the reaper failed'),
    }),
    maintenance: [
      createNamedLease(worker, {
        name: 'outbox.figures',
        leaseMs: 15_000,
        work: (held) => figures.export(held),
        onError: onLeaseError,
      }),
      createRetentionService(worker, {
        retention: createPostgresRetention(db, options),
        onPurged: (purged) => {
          if (purged.archived + purged.deleted + purged.forgotten > 0)
            log.info(purged, 'orders that are done were archived, and old ones removed');
        },
        onAuditMaintained: (maintenance) =>
          log.debug(maintenance, 'the months of the audit were looked after'),
        onError: onLeaseError,
      }),
    ],
    checks: [destinationsCheck(store, destinations, delivery.gateOf)],
  };
}

function openDestinations({ broker, options }: OutboxDeps): ReadonlyMap<string, Destination> {
  const { retryMax, backoff } = options;
  const open = (settings: DestinationSettings, isInternal: boolean): [string, Destination] => [
    settings.name,
    createDestination(settings, { broker, retryMax, backoff, isInternal }),
  ];
  return new Map([
    ...options.destinations.map((settings) => open(settings, false)),
    ...options.internalDestinations.map((settings) => open(settings, true)),
  ]);
}
