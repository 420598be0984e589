import { accessMigrations, createAccess } from './access/index.ts';
import { anchorDestinations, auditMigrations, createAudit } from './audit/index.ts';
import { apiTags } from './compose/api-tags.ts';
import { createMasterKey } from './compose/create-master-key.ts';
import { kafkaName } from './compose/create-broker.ts';
import { loggerFor } from './compose/logger-for.ts';
import { openParts, type Parts, type PartsOptions } from './compose/open-parts.ts';
import { originRules } from './compose/origin-rules.ts';
import { startServices } from './compose/start-services.ts';
import { closeAll, stopSystem, stopWithin, type Close } from './compose/stop-system.ts';
import type { Config } from './config/config.ts';
import { removedAtIngest } from './config/resolve/resolve-protect.ts';
import { describeConfig } from './config/describe-config.ts';
import { inboxOf } from './compose/inbox-parts.ts';
import { consoleMigrations, createConsole } from './console/index.ts';
import { createDlq, dlqMigrations, watchedMessages, watchRedrives } from './dlq/index.ts';
import { createJobs, jobsMigrations, watchedJobs } from './jobs/index.ts';
import { systemClock } from './kernel/clock.ts';
import { createProtection } from './kernel/protect/protection.ts';
import type { Service } from './kernel/service.ts';
import { createNotify } from './notify/index.ts';
import {
  addInternalOrders,
  createOutbox,
  destinationsWithDead,
  outboxMigrations,
  unsentKeys,
  watchedOrders,
} from './outbox/index.ts';
import type { Broker } from './platform/broker/port.ts';
import { createHttpServer, type HttpServer } from './platform/http/http-server.ts';
import { databaseCheck, loginCheck } from './platform/postgres/database-check.ts';
import { rightsCheck } from './platform/postgres/rights-check.ts';
import type { MigrationSource } from './platform/postgres/migrate.ts';
import { createPlatformRetention } from './platform/work/platform-retention.ts';
import { isMissingRight, isOutage } from './platform/postgres/sqlstate.ts';
import type { Logger } from './platform/telemetry/logger.ts';
import {
  createAddEvents,
  createSaga,
  eventsDestination,
  eventsDestinations,
  sagaMigrations,
  watchedSagas,
} from './saga/index.ts';

/** The running system. This file assembles it, and is the only one that knows every slice. */
export type System = Readonly<{
  url: string;
  /** Of the metrics, if they have a port of their own. */
  metricsUrl: string | null;
  /** Of the embedded database, with its password; null if a database is configured. */
  embeddedDatabaseUrl: string | null;
  /** Resolves when the embedded database has ended, for any reason. Nothing starts it again while this process runs. */
  databaseEnded: Promise<void> | null;
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
  consoleMigrations,
];

export type SystemOptions = Readonly<{
  onPortTaken: 'next' | 'fail';
  /** Ends a start that waits for migrations; the system is then to be stopped. */
  stopAsked?: AbortSignal;
  logger?: Logger;
}> &
  Pick<PartsOptions, 'wrap'>;

/** Resolves when the system is ready; without `database.migrate` that may be long after its HTTP server answers. */
export async function startSystem(config: Config, options: SystemOptions): Promise<System> {
  const { logger = loggerFor(config), stopAsked = new AbortController().signal } = options;
  const stopWithinMs = stopWithin(config.server.shutdownTimeoutMs);
  for (const warning of config.warnings) logger.warn(warning);
  const opened: Close[] = [];
  try {
    const parts = await openParts(config, { ...options, logger, migrationSources }, opened);
    const slices = createSlices(config, parts);
    const http = createServer(config, options.onPortTaken, parts, slices);
    const { broker, worker, embedded, schema } = parts;
    const services = await startServices({
      services: servicesOf(config, parts, slices, http),
      http,
      schema,
      logger,
      stopWithinMs,
      stopAsked,
    });
    const url = http.address()?.url ?? '';
    const metricsUrl = http.metricsAddress()?.url ?? null;
    if (schema.outdated() === null)
      logger.info(
        { url, metricsUrl, roles: config.roles, kafka: kafkaName(config.kafka), replica: worker.owner },
        'redrive is ready',
      );
    const stop = () => stopSystem({ services, opened, logger, stopWithinMs });
    return {
      url,
      metricsUrl,
      embeddedDatabaseUrl: embedded?.url ?? null,
      databaseEnded: embedded?.exited ?? null,
      broker,
      logger,
      routes: http.routes,
      stop,
    };
  } catch (error) {
    await closeAll(opened);
    throw error;
  }
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
      removal: createProtection(removedAtIngest(config.protect)),
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
  const masks = parts.maskPayloads('topics', 'dlq:payloads:view');
  const console = createConsole({
    ...parts,
    watched: { dlq: watchedMessages, outbox: watchedOrders, jobs: watchedJobs, sagas: watchedSagas },
    inbox: inboxOf(parts),
    watchRedrives: () => watchRedrives(db, masks.ofAny()),
    finders: { dlq: dlq.find, outbox: outbox.find, jobs: jobs.find, saga: saga.find },
    system: {
      about: {
        replica: parts.worker.owner,
        version: config.app.version,
        environment: config.app.environment,
        roles: config.roles,
      },
      readNotifiers: notify.readNotifiers,
      describeConfig: () => describeConfig(config),
    },
    options: { ...config.app, publicUrl: config.server.publicUrl, login: access.loginPath },
  });
  return { dlq, notify, outbox, jobs, saga, audit, access, console };
}

function createServer(
  config: Config,
  onPortTaken: SystemOptions['onPortTaken'],
  { db, pool, schema, slicesWithSchema, clock, logger, metrics, protection }: Parts,
  { dlq, outbox, jobs, saga, notify, audit, access, console }: Slices,
): HttpServer {
  const { app, roles, server, auth } = config;
  const http = createHttpServer({
    host: server.host,
    port: server.port,
    metricsAt: metricsAt(server),
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
    cover: protection.ofEverything().text,
    revocations: access.revocations,
    showsChecks: auth.mode !== 'required',
    hasConsole: roles.includes('api'),
    closedBy: schema.outdated,
    checks: [
      databaseCheck(db),
      loginCheck(pool),
      schema.check,
      ...access.checks,
      ...[
        rightsCheck(db, clock, slicesWithSchema),
        ...dlq.checks,
        ...outbox.checks,
        ...jobs.checks,
        ...saga.checks,
        ...notify.checks,
        ...audit.checks,
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
  http.addRoutes('console', (scope) => console.addRoutes(scope, http));
  return http;
}

function metricsAt({ host, metricsHost = host, metricsPort }: Config['server']) {
  return metricsPort === undefined ? null : { host: metricsHost, port: metricsPort };
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
    ...console.maintenance,
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
