import type { Clock } from '../kernel/clock.ts';
import { createLoop } from '../kernel/loop.ts';
import type { Service } from '../kernel/service.ts';
import type { HttpApp } from '../platform/http/http-app.ts';
import type { HealthCheck } from '../platform/http/readiness.ts';
import type { Database, Queryable } from '../platform/postgres/database.ts';
import type { MigrationSource } from '../platform/postgres/migrate.ts';
import type { Wake } from '../platform/postgres/wake.ts';
import type { Worker } from '../platform/postgres/work.ts';
import type { Logger } from '../platform/telemetry/logger.ts';
import type { Metrics } from '../platform/telemetry/metrics.ts';
import { checkWorkflow as checkWithServices, type CheckedWorkflow } from './adapter/check-workflow.ts';
import { addSagaSliceRoutes } from './adapter/http-routes.ts';
import { MAX_WORKFLOW_BYTES, readWorkflow } from './adapter/workflow-yaml.ts';
import type { ServiceSettings } from './domain/service-settings.ts';
import { createActing } from './infra/acting.ts';
import { createCalledMethods } from './infra/called-methods.ts';
import { createDatabaseClock } from './infra/database-clock.ts';
import { eventsCheck } from './infra/events-check.ts';
import { findFormerMigrations } from './infra/former-system.ts';
import { createMaintenance } from './infra/maintenance-services.ts';
import { createAskMethods, openServices } from './infra/open-services.ts';
import { createPostgresSagaStore } from './infra/postgres-saga-store.ts';
import { createPostgresWorkflows } from './infra/postgres-workflows.ts';
import { createSagaMetrics } from './infra/saga-metrics.ts';
import { sagaChannel } from './infra/saga-rows.ts';
import type { AddEvents } from './infra/settle-sagas.ts';
import { createWorkflowFiles } from './infra/workflow-files.ts';
import { workflowsCheck } from './infra/workflows-check.ts';
import { createCallSlots } from './usecase/call-slots.ts';
import { checkMethods } from './usecase/register-workflow.ts';
import { createSagaEngine } from './usecase/run-sagas.ts';
import { createSettleQueue } from './usecase/settle-queue.ts';

export type { CheckedPoint, CheckedUndo, CheckedWorkflow } from './adapter/check-workflow.ts';
export { createAddEvents, eventsDestination, eventsDestinations } from './infra/saga-events.ts';

export type SagaDeps = Readonly<{
  db: Database;
  worker: Worker;
  wake: Wake;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  /** Tells the outside, in the transaction of what it tells about; null where there is nobody to tell. */
  addEvents: AddEvents | null;
  /** Of these sagas, those with events that are not told yet; and whether some can never be. */
  unsentEvents: (db: Queryable, sagaIds: readonly string[]) => Promise<ReadonlySet<string>>;
  hasDeadEvents: () => Promise<boolean>;
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
  /** Registers the workflows of the folder; in every process that runs sagas or shows them. */
  workflowFiles: Service;
  /** Runs sagas. */
  engine: Service;
  /** Lets the sagas of lost workers go on; in every process that runs sagas or shows them. */
  reaper: Service;
  /** What one replica does for all: archive, figures. */
  maintenance: readonly Service[];
  checks: readonly HealthCheck[];
}>;

/** A database of the system that came before ours has the first migrations, but no history of them. */
export const sagaMigrations: MigrationSource = {
  slice: 'saga',
  directory: new URL('infra/migrations/', import.meta.url),
  baseline: findFormerMigrations,
};

/** For the command line, which looks at a workflow without a running system; null: with no services in view. */
export async function checkWorkflow(
  text: string,
  settings: readonly ServiceSettings[] | null,
): Promise<CheckedWorkflow> {
  const services = openServices(settings ?? []);
  try {
    const known = settings === null ? null : new Map(settings.map((each) => [each.name, each]));
    return await checkWithServices(text, known, createAskMethods(services));
  } finally {
    await services.close();
  }
}

const reapEveryMs = 1000;
const pollMs = 1000;

export function createSaga(deps: SagaDeps): Saga {
  const { db, worker, clock, options } = deps;
  const log = deps.logger.child({ slice: 'saga' });
  const time = createDatabaseClock(clock);
  const services = openServices(options.services);
  const store = createPostgresSagaStore({ db, worker, time, addEvents: deps.addEvents });
  const counts = createSagaMetrics(deps.metrics, log, time.now);
  const known = new Map(options.services.map((service) => [service.name, service]));
  const workflows = createPostgresWorkflows(db);
  const askLocally = createAskMethods(services, 'local');
  const workflowFiles = createWorkflowFiles({
    directory: options.workflowDir,
    workflows,
    read: (text) => readWorkflow(text, known),
    check: async (workflow) => (await checkMethods(askLocally, workflow)).flaws,
    maxBytes: MAX_WORKFLOW_BYTES,
    log,
  });
  const calledMethods = createCalledMethods({
    workflows,
    askMethods: createAskMethods(services),
    onTroubles: (troubles) =>
      log.warn({ troubles }, 'workflows call what services do not have, or do not tell'),
    onError: (error) => log.warn({ err: error }, 'looking at what workflows call failed'),
  });
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
      onSettled: counts.settled,
      waitForWork: (ms, signal) => deps.wake.wait(sagaChannel, ms, signal),
      onError: (what, error) => log.warn({ err: error }, `${what} failed`),
    },
    { mostHeld: 2 * options.maxConcurrent, leaseMs: options.leaseSecs * 1000, pollMs },
  );

  const reaper = createLoop({
    name: 'saga reaper',
    everyMs: reapEveryMs,
    async run() {
      const reaped = await store.reap();
      if (reaped > 0) log.warn({ count: reaped }, 'sagas of lost workers go on');
    },
    onError: (error) => log.warn({ err: error }, 'the reaper failed'),
  });
  const acting = createActing({
    db,
    log,
    services,
    addEvents: deps.addEvents,
    onSettled: counts.settled,
  });

  return {
    addRoutes: (app) => addSagaSliceRoutes(app, { ...acting, services: known }),
    workflowFiles: {
      ...workflowFiles,
      async start() {
        await workflowFiles.start();
        // A service that is away keeps nobody waiting.
        void calledMethods.look();
      },
    },
    engine,
    reaper: {
      ...reaper,
      // The last to stop of those that use them, also where no engine runs.
      async stop(deadline) {
        await reaper.stop(deadline);
        await services.close();
      },
    },
    maintenance: createMaintenance({
      db,
      worker,
      metrics: deps.metrics,
      log,
      retention: { ...options, unsentEvents: deps.unsentEvents },
    }),
    checks: [
      workflowsCheck(db, {
        badFiles: workflowFiles.bad,
        services: [...known.keys()],
        methodTroubles: calledMethods.troubles,
      }),
      ...(deps.addEvents === null ? [] : [eventsCheck(deps.hasDeadEvents)]),
    ],
  };
}
