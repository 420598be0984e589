import type { Clock } from '../kernel/clock.ts';
import type { Service } from '../kernel/service.ts';
import { createReaper } from '../platform/work/reaper.ts';
import type { MaskPayloads } from '../platform/http/access/payload-masks.ts';
import type { HttpApp } from '../platform/http/http-app.ts';
import type { HealthCheck } from '../platform/http/readiness.ts';
import type { Database, Queryable } from '../platform/postgres/database.ts';
import type { MigrationSource } from '../platform/postgres/migrate.ts';
import type { Logger } from '../platform/telemetry/logger.ts';
import type { Metrics } from '../platform/telemetry/metrics.ts';
import { createGauges } from '../platform/work/gauges.ts';
import { notify, type Wake } from '../platform/work/wake.ts';
import { sql } from '../platform/postgres/sql.ts';
import { createWaits } from '../platform/work/wait-for-due.ts';
import { hasRow, type Worker } from '../platform/work/work.ts';
import { createSagaFinder } from './browse/find-items.ts';
import { addSagaRoutes } from './browse/saga-routes.ts';
import { addServiceRoutes } from './browse/service-routes.ts';
import { addActionRoutes } from './decide/action-routes.ts';
import type { DecideDeps } from './decide/locked-saga.ts';
import { resumeSaga } from './decide/resume-saga.ts';
import { addRetryRoutes } from './decide/retry-routes.ts';
import { checkWorkflow as checkWithServices, type CheckedWorkflow } from './define/check-workflow.ts';
import { createMethodCheck } from './define/method-check.ts';
import { createWorkflowFiles } from './define/workflow-files.ts';
import { addWorkflowRoutes } from './define/workflow-routes.ts';
import { workflowsCheck } from './define/workflows-check.ts';
import { listWorkflows } from './define/workflows-table.ts';
import type { ServiceSettings } from './domain/service-settings.ts';
import { findPredecessorMigrations } from './predecessor-migrations.ts';
import { createCallSemaphore } from './run/call-semaphore.ts';
import { firstDueInMs } from './run/claim-sagas.ts';
import { createDatabaseClock, type DatabaseClock } from './run/database-clock.ts';
import { engineSql } from './run/engine-sql.ts';
import { eventsCheck } from './run/events-check.ts';
import { reapSagas } from './run/reap-sagas.ts';
import { createSagaEngine } from './run/run-sagas.ts';
import { createSagaMetrics, type SagaMetrics } from './run/saga-metrics.ts';
import { createServiceOutages } from './run/service-outages.ts';
import { createAskMethods, openServices, type Services } from './run/services/open-services.ts';
import { sagaChannel, sagas } from './saga-table.ts';
import { addStartRoutes } from './start/start-routes.ts';
import { createSagaRetention } from './upkeep/retention.ts';
import { sagaGauges } from './upkeep/gauges.ts';
import type { AddEvents } from './write-sagas.ts';

export { sagasForInbox } from './browse/sagas-for-inbox.ts';
export { watchedSagas } from './browse/watched-sagas.ts';
export type { CheckedPoint, CheckedUndo, CheckedWorkflow } from './define/check-workflow.ts';
export { createAddEvents, eventsDestination, eventsDestinations } from './run/saga-events.ts';

export type SagaDeps = Readonly<{
  db: Database;
  worker: Worker;
  wake: Wake;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  maskPayloads: MaskPayloads;
  /** Publishes events in the transaction that causes them; null if they are not published. */
  addEvents: AddEvents | null;
  /** Which of these sagas have unpublished events; and whether some events are dead. */
  unsentEvents: (db: Queryable, sagaIds: readonly string[]) => Promise<ReadonlySet<string>>;
  hasDeadEvents: () => Promise<boolean>;
  options: Readonly<{
    workflowDir: string;
    maxConcurrent: number;
    leaseSecs: number;
    retentionMs: number;
    archiveRetentionMs: number;
    /** Whether to retry sagas that are stuck because a service was down when it is back. */
    autoResume: boolean;
    services: readonly ServiceSettings[];
  }>;
}>;

export type Saga = Readonly<{
  addRoutes(app: HttpApp): void;
  /** Sagas, by id or correlation id. */
  find: ReturnType<typeof createSagaFinder>;
  /** Registers the workflows of the folder; in every process that runs or shows sagas. */
  workflowFiles: Service;
  /** Runs sagas. */
  engine: Service;
  /** Releases expired leases; in every process that runs or shows sagas. */
  reaper: Service;
  /** Runs in one replica at a time: circuits, gauges, retention. */
  maintenance: readonly Service[];
  checks: readonly HealthCheck[];
}>;

/** A database of the predecessor has the first migrations, but no history of them. */
export const sagaMigrations: MigrationSource = {
  slice: 'saga',
  directory: new URL('migrations/', import.meta.url),
  baseline: findPredecessorMigrations,
};

/** For the command line, which checks a workflow without a server; null if no services are configured. */
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

/** Only the backstop: notifications wake workers earlier. */
const pollMs = 1000;

export function createSaga(deps: SagaDeps): Saga {
  const { db, worker, clock, addEvents, options } = deps;
  const log = deps.logger.child({ slice: 'saga' });
  const time = createDatabaseClock(clock);
  const services = openServices(options.services);
  const configured = new Map(options.services.map((service) => [service.name, service]));
  const onSettled = createSagaMetrics(deps.metrics, log, time.now).settled;
  const decide: DecideDeps = { db, serviceOf: services.of, addEvents, onSettled };
  const workflowFiles = createWorkflowFiles({
    db,
    log,
    directory: options.workflowDir,
    services: configured,
    askMethods: createAskMethods(services, 'local'),
  });
  const askMethods = createAskMethods(services);
  const methodCheck = createMethodCheck({
    listWorkflows: () => listWorkflows(db),
    askMethods,
    onProblems: (problems) =>
      log.warn({ problems }, 'workflows call methods that services lack or do not list'),
    onError: (error) => log.warn({ err: error }, 'failed to check the methods that workflows call'),
  });
  const outages = createServiceOutages({
    db,
    worker,
    clock,
    log,
    services,
    resume: options.autoResume ? (sagaId, service) => resumeSaga(decide, sagaId, service) : null,
  });

  const masking = deps.maskPayloads('workflows', 'saga:payloads:view');

  return {
    find: createSagaFinder({ db, masking }),
    addRoutes(app) {
      addWorkflowRoutes(app, { db, log, services: configured, askMethods });
      addStartRoutes(app, db);
      addSagaRoutes(app, { db, masking });
      addActionRoutes(app, { ...decide, log });
      addRetryRoutes(app, { ...decide, clock, log, masking });
      addServiceRoutes(app, { db, services: configured, masking });
    },
    workflowFiles: {
      ...workflowFiles,
      async start() {
        await workflowFiles.start();
        // In the background, because a service may be down.
        void methodCheck.run();
      },
    },
    ...createRun(deps, { log, time, services, outages, onSettled }),
    maintenance: [
      outages.watch,
      createGauges(worker, { name: 'saga.gauges', ...sagaGauges(deps.metrics, { db }), log }),
      createSagaRetention(worker, { db, log, options: { ...options, unsentEvents: deps.unsentEvents } }),
    ],
    checks: [
      workflowsCheck(db, {
        badFiles: workflowFiles.bad,
        services: [...configured.keys()],
        methodProblems: methodCheck.problems,
      }),
      ...(addEvents === null ? [] : [eventsCheck(deps.hasDeadEvents)]),
    ],
  };
}

type RunParts = Readonly<{
  log: Logger;
  time: DatabaseClock;
  services: Services;
  outages: ReturnType<typeof createServiceOutages>;
  onSettled: SagaMetrics['settled'];
}>;

function createRun(
  { db, worker, clock, wake, addEvents, options }: SagaDeps,
  { log, time, services, outages, onSettled }: RunParts,
): Pick<Saga, 'engine' | 'reaper'> {
  const engine = createSagaEngine(
    {
      ...engineSql({ db, worker, time, addEvents }),
      clock,
      calls: createCallSemaphore({
        maxInFlight: options.maxConcurrent,
        maxInFlightTo: (name) => services.of(name)?.maxInFlight ?? 1,
        maxWaiting: options.maxConcurrent,
      }),
      circuits: outages.circuits,
      send: services.send,
      serviceOf: services.of,
      now: time.now,
      random: Math.random,
      onSettled,
      beat: () => worker.watch?.beat('saga', 'engine'),
      ...createWaits(wake, sagaChannel, () => firstDueInMs(db)),
      onError: (what, error) => log.warn({ err: error }, `${what} failed`),
    },
    { maxLeased: 2 * options.maxConcurrent, leaseMs: options.leaseSecs * 1000, pollMs },
  );

  const reaper = createReaper({
    slice: 'saga',
    worker,
    clock,
    shortestLeaseMs: options.leaseSecs * 1000,
    hasLeased: () => hasRow(db, sagas, sql`t.lease_owner IS NOT NULL`),
    async reap() {
      const count = await reapSagas(db);
      if (count > 0) await notify(db, sagaChannel);
      return count;
    },
    onReaped: (count) => log.warn({ count }, 'released sagas of lost workers'),
    onError: (error) => log.warn({ err: error }, 'reaper failed'),
  });
  return {
    engine: {
      ...engine,
      async start() {
        await outages.startRefresh(() => engine.leasedCount() > 0);
        await engine.start();
      },
      async stop(deadline) {
        await engine.stop(deadline);
        await outages.stopRefresh(deadline);
        // Other replicas take over what was released.
        await notify(db, sagaChannel).catch(() => {});
      },
    },
    reaper: {
      ...reaper,
      // The reaper stops last of all that use the services, also in a process without an engine.
      async stop(deadline) {
        await reaper.stop(deadline);
        await services.close();
      },
    },
  };
}
