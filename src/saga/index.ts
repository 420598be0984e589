import type { Clock } from '../kernel/clock.ts';
import { createLoop } from '../kernel/loop.ts';
import type { Service } from '../kernel/service.ts';
import type { HttpApp } from '../platform/http/http-app.ts';
import type { HealthCheck } from '../platform/http/readiness.ts';
import type { Database } from '../platform/postgres/database.ts';
import type { MigrationSource } from '../platform/postgres/migrate.ts';
import type { Wake } from '../platform/postgres/wake.ts';
import type { Worker } from '../platform/postgres/work.ts';
import type { Logger } from '../platform/telemetry/logger.ts';
import type { Metrics } from '../platform/telemetry/metrics.ts';
import type { ServiceSettings } from './domain/service-settings.ts';
import { createDatabaseClock } from './infra/database-clock.ts';
import { openServices } from './infra/open-services.ts';
import { createPostgresSagaStore } from './infra/postgres-saga-store.ts';
import { sagaChannel } from './infra/saga-rows.ts';
import type { AddEvents } from './infra/settle-sagas.ts';
import { createCallSlots } from './usecase/call-slots.ts';
import { createSagaEngine } from './usecase/run-sagas.ts';
import { createSettleQueue } from './usecase/settle-queue.ts';

/** For the command line, which looks at workflows without a running system. */
export { checkWorkflow } from './adapter/check-workflow.ts';
export type { CheckedPoint, CheckedUndo, CheckedWorkflow } from './adapter/check-workflow.ts';
export type { KnownServices } from './domain/parse-workflow.ts';
export type { AddEvents, SagaEvent } from './infra/settle-sagas.ts';

export type SagaDeps = Readonly<{
  db: Database;
  worker: Worker;
  wake: Wake;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  /** Tells the outside, in the transaction of what it tells about; null where there is nobody to tell. */
  addEvents: AddEvents | null;
  options: Readonly<{
    workflowDir: string;
    maxConcurrent: number;
    leaseSecs: number;
    retentionMs: number;
    archiveRetentionMs: number;
    services: readonly ServiceSettings[];
  }>;
}>;

export type Saga = Readonly<{
  addRoutes(app: HttpApp): void;
  /** Runs sagas. */
  engine: Service;
  /** Lets the sagas of lost workers go on; in every process that runs sagas or shows them. */
  reaper: Service;
  /** What one replica does for all: archive, figures. */
  maintenance: readonly Service[];
  checks: readonly HealthCheck[];
}>;

export const sagaMigrations: MigrationSource = {
  slice: 'saga',
  directory: new URL('infra/migrations/', import.meta.url),
};

const reapEveryMs = 1000;
const pollMs = 1000;

export function createSaga(deps: SagaDeps): Saga {
  const { db, worker, clock, options } = deps;
  const log = deps.logger.child({ slice: 'saga' });
  const time = createDatabaseClock(clock);
  const services = openServices(options.services);
  const store = createPostgresSagaStore({ db, worker, time, addEvents: deps.addEvents });
  const engine = createSagaEngine(
    {
      store,
      clock,
      queue: createSettleQueue(store),
      slots: createCallSlots({
        most: options.maxConcurrent,
        mostTo: (name) => services.of(name)?.maxInFlight ?? 1,
        mostWaiting: options.maxConcurrent,
      }),
      send: services.send,
      serviceOf: services.of,
      now: time.now,
      random: Math.random,
      onSettled: () => {},
      waitForWork: (ms, signal) => deps.wake.wait(sagaChannel, ms, signal),
      onError: (what, error) => log.warn({ err: error }, `${what} failed`),
    },
    { mostHeld: 2 * options.maxConcurrent, leaseMs: options.leaseSecs * 1000, pollMs },
  );

  return {
    addRoutes: () => {},
    engine: {
      ...engine,
      async stop(deadline) {
        await engine.stop(deadline);
        await services.close();
      },
    },
    reaper: createLoop({
      name: 'saga reaper',
      everyMs: reapEveryMs,
      async run() {
        const reaped = await store.reap();
        if (reaped > 0) log.warn({ count: reaped }, 'sagas of lost workers go on');
      },
      onError: (error) => log.warn({ err: error }, 'the reaper failed'),
    }),
    maintenance: [],
    checks: [],
  };
}
