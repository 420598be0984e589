import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { accessMigrations, createAccess } from './access/index.ts';
import { anchorDestinations, auditMigrations, createAudit } from './audit/index.ts';
import { apiTags } from './compose/api-tags.ts';
import { createMasterKey } from './compose/create-master-key.ts';
import { kafkaName, openBroker } from './compose/create-broker.ts';
import { loggerFor } from './compose/logger-for.ts';
import { openDatabase } from './compose/open-database.ts';
import { openSchema } from './compose/open-schema.ts';
import { openWake } from './compose/open-wake.ts';
import { originRules } from './compose/origin-rules.ts';
import { startServices } from './compose/start-services.ts';
import { closeAll, stopSystem, stopWithin, type Close } from './compose/stop-system.ts';
import type { Config } from './config/config.ts';
import { createConsole } from './console/index.ts';
import { createDlq, dlqMigrations } from './dlq/index.ts';
import { createJobs, jobsMigrations } from './jobs/index.ts';
import { sleep, systemClock } from './kernel/clock.ts';
import { createProtection } from './kernel/protect/protection.ts';
import type { Service } from './kernel/service.ts';
import { createNotify } from './notify/index.ts';
import {
  addInternalOrders,
  createOutbox,
  destinationsWithDead,
  outboxMigrations,
  unsentKeys,
} from './outbox/index.ts';
import type { Broker } from './platform/broker/port.ts';
import { maskPayloadsBy } from './platform/http/access/payload-masks.ts';
import { createHttpServer, type HttpServer } from './platform/http/http-server.ts';
import { databaseCheck, loginCheck } from './platform/postgres/database-check.ts';
import { createCredentialWatch, exportPool } from './platform/postgres/database-metrics.ts';
import { rightsCheck } from './platform/postgres/rights-check.ts';
import type { Database } from './platform/postgres/database.ts';
import type { MigrationSource } from './platform/postgres/migrate.ts';
import { createPlatformRetention } from './platform/work/platform-retention.ts';
import { createReplica } from './platform/work/replicas.ts';
import { isMissingRight, isOutage } from './platform/postgres/sqlstate.ts';
import { createWorkWatch } from './platform/work/work-watch.ts';
import type { Worker } from './platform/work/work.ts';
import type { Logger } from './platform/telemetry/logger.ts';
import { createMetrics } from './platform/telemetry/metrics.ts';
import { startTracing } from './platform/telemetry/tracing.ts';
import {
  createAddEvents,
  createSaga,
  eventsDestination,
  eventsDestinations,
  sagaMigrations,
} from './saga/index.ts';

/** The running system. This file assembles it, and is the only one that knows every slice. */
export type System = Readonly<{
  url: string;
  /** Of the embedded database, with its password; null if a database is configured. */
  embeddedDatabaseUrl: string | null;
  broker: Broker | null;
  logger: Logger;
  /** All routes and who may call them. */
  routes: HttpServer['routes'];
  stop(): Promise<void>;
}>;

/** For commands that need no running server. */
export { loggerFor };
export { archiveMessages, deriveFingerprints, purgeArchive, recountMessages } from './dlq/index.ts';
export { payloadsFor } from './compose/open-payloads.ts';
export { checkWorkflow } from './saga/index.ts';
export type { CheckedPoint, CheckedUndo, CheckedWorkflow } from './saga/index.ts';

/** In the order of application. */
export const migrationSources: readonly MigrationSource[] = [
  { slice: 'platform', directory: new URL('platform/postgres/migrations/', import.meta.url) },
  dlqMigrations,
  outboxMigrations,
  jobsMigrations,
  sagaMigrations,
  accessMigrations,
  auditMigrations,
];

/** The schema of each slice has its name. */
const schemas: readonly string[] = migrationSources.map(({ slice }) => slice);

export type SystemOptions = Readonly<{
  onPortTaken: 'next' | 'fail';
  /** Ends a start that waits for migrations; the system is then to be stopped. */
  stopAsked?: AbortSignal;
  logger?: Logger;
  /** Wraps parts of the system, to inject faults in tests. */
  wrap?: Readonly<{ database?: (db: Database) => Database; broker?: (broker: Broker) => Broker }>;
}>;

/** A database that does not answer must not use up the time for the rest. */
const closeWithinMs = 2000;

/** Resolves when the system is ready; without `database.migrate` that may be long after its HTTP server answers. */
export async function startSystem(config: Config, options: SystemOptions): Promise<System> {
  const { logger = loggerFor(config), stopAsked = new AbortController().signal } = options;
  const stopWithinMs = stopWithin(config.server.shutdownTimeoutMs);
  for (const warning of config.warnings) logger.warn(warning);
  const opened: Close[] = [];
  try {
    const parts = await openParts(config, { ...options, logger }, opened);
    const slices = createSlices(config, parts);
    const http = createServer(config, options.onPortTaken, parts, slices);
    const { broker, worker, embeddedDatabaseUrl, schema } = parts;
    const services = await startServices({
      services: servicesOf(config, parts, slices, http),
      http,
      schema,
      logger,
      stopWithinMs,
      stopAsked,
    });
    const url = http.address()?.url ?? '';
    if (schema.outdated() === null)
      logger.info(
        { url, roles: config.roles, kafka: kafkaName(config.kafka), replica: worker.owner },
        'redrive is ready',
      );
    const stop = () => stopSystem({ services, opened, logger, stopWithinMs });
    return { url, embeddedDatabaseUrl, broker, logger, routes: http.routes, stop };
  } catch (error) {
    await closeAll(opened);
    throw error;
  }
}

/** What all slices share. */
type Parts = Awaited<ReturnType<typeof openParts>>;

/** Telemetry, database, broker, and what workers need. Adds to `opened` what has to be closed. */
async function openParts(
  config: Config,
  { logger, wrap }: Pick<SystemOptions, 'wrap'> & Readonly<{ logger: Logger }>,
  opened: Close[],
) {
  const metrics = createMetrics();
  const tracing = await startTracing({
    otlpEndpoint: config.telemetry.otlpEndpoint,
    service: config.app.name,
    version: config.app.version,
    environment: config.app.environment,
    onExportError: (error) => logger.warn({ err: error }, 'failed to export spans'),
  });
  opened.push(() => tracing.stop());
  const { database: embedded, db: pool } = await openDatabase(config, logger, { metrics });
  const db = wrap?.database?.(pool) ?? pool;
  opened.push(async () => embedded?.stop());
  // A hanging statement would block db.end(); the embedded server ends its connections itself.
  opened.push(() => Promise.race([db.end(), sleep(closeWithinMs)]));
  const schema = await openSchema(db, migrationSources, { config, metrics, logger });
  exportPool(metrics, pool);
  const broker = await openBroker(config, wrap?.broker);
  opened.push(async () =>
    broker?.close().catch((error: unknown) => logger.warn({ err: error }, 'failed to close the broker')),
  );
  const watch = createWorkWatch(metrics, schemas);
  const worker: Worker = {
    db,
    watch,
    clock: systemClock,
    owner: `${hostname()}-${process.pid}-${randomUUID().slice(0, 8)}`,
    onStale(slice, count) {
      metrics.staleWrites.inc({ slice }, count);
      logger.warn({ slice, count }, 'dropped stale writes after lease takeover');
    },
  };
  const replica = createReplica(db, {
    replicaId: worker.owner,
    roles: config.roles,
    version: config.app.version,
    beat: () => watch.beat('platform', 'heartbeat'),
    onError: (error) => logger.warn({ err: error }, 'failed to write the heartbeat'),
  });
  const credentials = createCredentialWatch(db, {
    metrics,
    beat: () => watch.beat('platform', 'credentials'),
    onError: (error) => logger.warn({ err: error }, 'failed to read when the credentials expire'),
  });
  const protection = createProtection(config.protect);
  const wake = openWake(config, db, { worker: worker.owner, canListen: pool.canListen(), logger });
  const embeddedDatabaseUrl = embedded?.url ?? null;
  return {
    db,
    pool,
    schema,
    embeddedDatabaseUrl,
    broker,
    worker,
    wake,
    replica,
    credentials,
    protection,
    maskPayloads: maskPayloadsBy(protection),
    clock: systemClock,
    logger,
    metrics,
  };
}

type Slices = ReturnType<typeof createSlices>;

function createSlices(config: Config, parts: Parts) {
  const { db, broker } = parts;
  const { kafka } = config;
  const audit = createAudit({ ...parts, addOrders: addInternalOrders, settings: config });
  const { denials } = audit;
  const access = createAccess({ ...parts, ...config.app, options: config.auth, denials });
  const dlq = createDlq({
    ...parts,
    masterKey: createMasterKey(config.protect),
    rights: access.rights,
    options: {
      ...config.dlq,
      topicPatterns: kafka.dlqTopicPattern,
      consumerGroup: kafka.consumerGroup,
      publishTimeoutMs: kafka.publishTimeoutMs,
      discoveryIntervalMs: kafka.discoveryIntervalMs,
      maxBytesInFlight: kafka.fetchMaxBytesInFlight,
      encryptedTopics: config.protect.encrypt.topics,
    },
  });
  const notify = createNotify({
    ...parts,
    notifiers: config.notify,
    source: { ...config.app, publicUrl: config.server.publicUrl },
    addOrder: (tx, order) => addInternalOrders(tx, [order]),
    destinationsWithDead,
  });
  const ofKafka = [...eventsDestinations(config), ...anchorDestinations(config)];
  const internalDestinations = [...notify.destinations, ...ofKafka];
  const outbox = createOutbox({ ...parts, options: { ...config.outbox, internalDestinations } });
  const jobs = createJobs({ ...parts, options: config.jobs });
  const saga = createSaga({
    ...parts,
    addEvents: broker === null ? null : createAddEvents(addInternalOrders, systemClock),
    unsentEvents: (tx, sagaIds) => unsentKeys(tx, eventsDestination, sagaIds),
    hasDeadEvents: async () => (await destinationsWithDead(db, [eventsDestination])).length > 0,
    options: { ...config.saga, services: config.services },
  });
  const console = createConsole({
    ...parts,
    options: { ...config.app, publicUrl: config.server.publicUrl, login: access.loginPath },
  });
  return { dlq, notify, outbox, jobs, saga, audit, access, console };
}

function createServer(
  config: Config,
  onPortTaken: SystemOptions['onPortTaken'],
  { db, pool, schema, logger, metrics }: Parts,
  { dlq, outbox, jobs, saga, notify, audit, access, console }: Slices,
): HttpServer {
  const { app, roles, server, auth } = config;
  const http = createHttpServer({
    host: server.host,
    port: server.port,
    onPortTaken,
    version: app.version,
    tags: apiTags,
    logger,
    metrics,
    limits: { bodyBytes: server.bodyLimitBytes },
    trustedProxies: server.trustedProxies,
    isPublicByTls: server.publicUrl?.startsWith('https:') === true,
    isOutage,
    isMissingRight,
    origin: originRules(config, access.cookiePrefix),
    authenticate: audit.denials.watch(access.authenticate),
    onDenied: audit.denials.onDenied,
    revocations: access.revocations,
    showsChecks: auth.mode !== 'required',
    hasConsole: roles.includes('api'),
    closedBy: schema.outdated,
    checks: [
      databaseCheck(db),
      loginCheck(pool),
      schema.check,
      ...[
        rightsCheck(db, systemClock, schemas),
        ...dlq.checks,
        ...outbox.checks,
        ...jobs.checks,
        ...saga.checks,
        ...notify.checks,
      ].map(schema.heldBack),
    ],
  });
  http.addRoutes('access', (scope) => access.addRoutes(scope));
  if (!roles.includes('api')) return http;
  http.addRoutes('dlq', (scope) => dlq.addRoutes(scope, http.stopping));
  http.addRoutes('outbox', (scope) => outbox.addRoutes(scope));
  http.addRoutes('jobs', (scope) => jobs.addRoutes(scope));
  http.addRoutes('saga', (scope) => saga.addRoutes(scope));
  http.addRoutes('audit', (scope) => audit.addRoutes(scope));
  http.addRoutes('console', (scope) => console.addRoutes(scope));
  return http;
}

/** In the order in which they start; they stop in reverse. */
function servicesOf(
  { roles }: Config,
  { wake, replica, credentials, worker, logger }: Parts,
  { dlq, outbox, jobs, saga, notify, audit, access, console }: Slices,
  http: HttpServer,
): readonly Service[] {
  const reapers = [
    dlq.reaper,
    outbox.reaper,
    outbox.watch,
    jobs.queues,
    jobs.reaper,
    saga.workflowFiles,
    saga.reaper,
  ];
  const workers = [
    ...dlq.maintenance,
    ...outbox.maintenance,
    ...jobs.maintenance,
    ...notify.services,
    ...audit.maintenance,
    createPlatformRetention(worker, logger),
    ...outbox.delivery,
    ...jobs.pushers,
    ...saga.maintenance,
    saga.engine,
  ];
  return [
    wake,
    replica,
    credentials,
    ...audit.services,
    ...access.services,
    ...(roles.includes('api') ? console.services : []),
    ...(roles.includes('api') || roles.includes('workers') ? [...reapers, dlq.redrives] : []),
    ...(roles.includes('workers') ? workers : []),
    ...(roles.includes('ingest') && dlq.reader !== null ? [dlq.reader] : []),
    dlq.retries,
    http,
  ];
}
