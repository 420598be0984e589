import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import type { Config } from './config.ts';
import type { DatabaseTarget as ConfiguredTarget } from './config/resolve-database.ts';
import type { KafkaConfig } from './config/resolve-kafka.ts';
import { readSecret } from './config/secret.ts';
import { createDlq, dlqMigrations } from './dlq/index.ts';
import { createJobs, jobsMigrations } from './jobs/index.ts';
import { sleep, systemClock } from './kernel/clock.ts';
import { AppError } from './kernel/errors.ts';
import { createLoop } from './kernel/loop.ts';
import { startAll, stopAll, type Service } from './kernel/service.ts';
import { createNotify } from './notify/index.ts';
import {
  addInternalOrder,
  addInternalOrders,
  createOutbox,
  destinationsWithDead,
  outboxMigrations,
  unsentKeys,
} from './outbox/index.ts';
import { createKafkaBroker } from './platform/broker/kafka/kafka-broker.ts';
import { createLocalBroker } from './platform/broker/local/local-broker.ts';
import type { Broker } from './platform/broker/port.ts';
import { startEmbeddedPostgres, type EmbeddedPostgres } from './platform/embedded/embedded-postgres.ts';
import { createHttpServer } from './platform/http/http-server.ts';
import { databaseCheck } from './platform/postgres/database-check.ts';
import { createDatabase, type Database, type DatabaseTarget } from './platform/postgres/database.ts';
import { migrateUp, migrationStatus, type MigrationSource } from './platform/postgres/migrate.ts';
import { forgetOldNotifyEvents } from './platform/postgres/notify-events.ts';
import { createReplica } from './platform/postgres/replicas.ts';
import { isOutage } from './platform/postgres/sqlstate.ts';
import { createWake } from './platform/postgres/wake.ts';
import type { Worker } from './platform/postgres/work.ts';
import { createLogger, type Logger } from './platform/telemetry/logger.ts';
import { createMetrics, type Metrics } from './platform/telemetry/metrics.ts';
import { startTracing } from './platform/telemetry/tracing.ts';
import {
  createAddEvents,
  createSaga,
  eventsDestination,
  eventsDestinations,
  sagaMigrations,
} from './saga/index.ts';

/** The whole system, from its parts. The only file that knows every slice. */
export type System = Readonly<{
  url: string;
  broker: Broker | null;
  logger: Logger;
  stop(): Promise<void>;
}>;

/** What the command line does without a running system. */
export { compileTopicGlobs, createPostgresArchiveStore as createDlqArchive } from './dlq/index.ts';
export { checkWorkflow } from './saga/index.ts';
export type { CheckedPoint, CheckedUndo, CheckedWorkflow } from './saga/index.ts';

/** In the order in which they are applied. */
export const migrationSources: readonly MigrationSource[] = [
  { slice: 'platform', directory: new URL('platform/postgres/migrations/', import.meta.url) },
  dlqMigrations,
  outboxMigrations,
  jobsMigrations,
  sagaMigrations,
];

export type SystemOptions = Readonly<{
  onPortTaken: 'next' | 'fail';
  logger?: Logger;
  /** Puts something between the system and its parts: a fault test, a tap. */
  wrap?: Readonly<{ database?: (db: Database) => Database; broker?: (broker: Broker) => Broker }>;
}>;

const stopWithinMs = 11_000;
const closeWithinMs = 2000;

export async function startSystem(config: Config, options: SystemOptions): Promise<System> {
  const logger = options.logger ?? loggerFor(config);
  const metrics = createMetrics();
  const tracing = await startTracing({
    otlpEndpoint: config.telemetry.otlpEndpoint,
    service: config.app.name,
    version: config.app.version,
    environment: config.app.environment,
  });
  for (const warning of config.warnings) logger.warn(warning);

  const opened = await openDatabase(config, logger, metrics);
  const { database } = opened;
  const db = options.wrap?.database?.(opened.db) ?? opened.db;
  try {
    await prepareSchema(db, config.database.migrate, logger);
  } catch (error) {
    await db.end();
    await database?.stop();
    throw error;
  }

  const connected = createBroker(config.kafka);
  const broker = connected === null ? null : (options.wrap?.broker?.(connected) ?? connected);
  // The local one makes no topics by itself, and nobody else makes this one there.
  if (config.kafka.local) await broker?.createTopic(config.saga.eventsTopic, 3);
  const replicaId = `${hostname()}-${process.pid}-${randomUUID().slice(0, 8)}`;
  const worker: Worker = {
    db,
    clock: systemClock,
    owner: replicaId,
    onStale(slice, count) {
      metrics.staleWrites.inc({ slice }, count);
      logger.warn({ slice, count }, 'stale writes were dropped: somebody else had taken over');
    },
  };
  const wake = createWake(db, {
    listen: config.database.wake === 'listen',
    worker: replicaId,
    onError: (error) => logger.warn({ err: error }, 'the LISTEN connection was lost; polling meanwhile'),
  });
  const replica = createReplica(db, {
    replicaId,
    roles: config.roles,
    version: config.app.version,
    onError: (error) => logger.warn({ err: error }, 'the heartbeat failed'),
  });
  const dlq = createDlq({
    db,
    worker,
    broker,
    wake,
    replica,
    clock: systemClock,
    logger,
    metrics,
    options: {
      ...config.dlq,
      topicPatterns: config.kafka.dlqTopicPattern,
      consumerGroup: config.kafka.consumerGroup,
      publishTimeoutMs: config.kafka.publishTimeoutMs,
      discoveryIntervalMs: config.kafka.discoveryIntervalMs,
      maxBytesInFlight: config.kafka.fetchMaxBytesInFlight,
    },
  });
  const notify = createNotify({
    db,
    worker,
    clock: systemClock,
    logger,
    metrics,
    notifiers: config.notify,
    speaker: { ...config.app, publicUrl: config.server.publicUrl },
    addOrder: addInternalOrder,
    destinationsWithDead,
  });
  const outbox = createOutbox({
    db,
    worker,
    broker,
    wake,
    clock: systemClock,
    logger,
    metrics,
    options: {
      ...config.outbox,
      internalDestinations: [...notify.destinations, ...eventsDestinations(config)],
    },
  });
  const jobs = createJobs({
    db,
    worker,
    wake,
    clock: systemClock,
    logger,
    metrics,
    options: config.jobs,
  });
  const saga = createSaga({
    db,
    worker,
    wake,
    clock: systemClock,
    logger,
    metrics,
    addEvents: broker === null ? null : createAddEvents(addInternalOrders, systemClock),
    unsentEvents: (tx, sagaIds) => unsentKeys(tx, eventsDestination, sagaIds),
    hasDeadEvents: async () => (await destinationsWithDead(db, [eventsDestination])).length > 0,
    options: { ...config.saga, services: config.services },
  });
  const http = createHttpServer({
    host: config.server.host,
    port: config.server.port,
    onPortTaken: options.onPortTaken,
    version: config.app.version,
    logger,
    metrics,
    limits: { bodyBytes: config.server.bodyLimitBytes },
    isOutage,
    checks: [
      databaseCheck(db),
      ...dlq.checks,
      ...outbox.checks,
      ...jobs.checks,
      ...saga.checks,
      ...notify.checks,
    ],
  });

  const runs = (role: Config['roles'][number]): boolean => config.roles.includes(role);
  if (runs('api')) {
    http.addRoutes('dlq', (app) => dlq.addRoutes(app, http.stopping));
    http.addRoutes('outbox', (app) => outbox.addRoutes(app));
    http.addRoutes('jobs', (app) => jobs.addRoutes(app));
    http.addRoutes('saga', (app) => saga.addRoutes(app));
  }
  const services: readonly Service[] = [
    wake,
    replica,
    ...(runs('api') || runs('workers')
      ? [dlq.reaper, outbox.reaper, outbox.watch, jobs.book, jobs.reaper, saga.workflowFiles, saga.reaper]
      : []),
    ...(runs('workers')
      ? [
          ...dlq.maintenance,
          ...outbox.maintenance,
          ...jobs.maintenance,
          ...notify.services,
          housekeeping(db, logger),
          ...outbox.delivery,
          ...jobs.pushers,
          ...saga.maintenance,
          saga.engine,
        ]
      : []),
    ...(runs('ingest') && dlq.reader !== null ? [dlq.reader] : []),
    dlq.retries,
    http,
  ];
  const closeAll = async (): Promise<void> => {
    await broker?.close().catch((error: unknown) => logger.warn({ err: error }, 'closing the broker failed'));
    // A statement that hangs would hold it up; the embedded server ends its connections itself.
    await Promise.race([db.end(), sleep(closeWithinMs)]);
    await database?.stop();
    await tracing.stop();
  };
  try {
    await startAll(services, stopWithinMs);
  } catch (error) {
    await closeAll();
    throw error;
  }

  const url = http.address()?.url ?? '';
  logger.info(
    { url, roles: config.roles, kafka: kafkaName(config.kafka), replica: replicaId },
    'redrive is ready',
  );
  return {
    url,
    broker,
    logger,
    async stop() {
      logger.info('stopping');
      await stopAll(services, stopWithinMs, (service, error) =>
        logger.warn({ err: error }, `${service.name} did not stop cleanly`),
      );
      await closeAll();
      logger.info('stopped');
    },
  };
}

export function loggerFor(config: Config): Logger {
  return createLogger({
    service: config.app.name,
    version: config.app.version,
    environment: config.app.environment,
    level: config.telemetry.logLevel,
  });
}

type OpenDatabase = Readonly<{ database: EmbeddedPostgres | null; db: Database }>;

/** The configured server; without one, an embedded PostgreSQL that stops with the process. */
export async function openDatabase(config: Config, logger: Logger, metrics?: Metrics): Promise<OpenDatabase> {
  const settings = config.database;
  const database =
    settings.mode === 'embedded'
      ? await startEmbeddedPostgres({ dataDir: settings.dataDir, log: (line) => logger.debug(line) })
      : null;
  const target = settings.mode === 'server' ? targetOf(settings) : embeddedTarget(database?.url ?? '');
  const db = createDatabase({
    target,
    direct: settings.mode === 'server' && settings.direct ? targetOf(settings.direct) : undefined,
    maxConnections: settings.maxOpenConns,
    keptIdleConnections: settings.maxIdleConns,
    maxLifetimeMs: settings.connMaxLifetimeMs,
    statementTimeoutMs: settings.statementTimeoutMs,
    applicationName: config.app.name,
    onQuery: (seconds) => metrics?.dbQueryDuration.observe(seconds),
    onIdleError: (error) => logger.warn({ err: error }, 'a database connection was lost'),
  });
  return { database, db };
}

function targetOf(target: ConfiguredTarget): DatabaseTarget {
  const { userFile, passwordFile } = target;
  return {
    host: target.host,
    port: target.port,
    database: target.name,
    user: () => (userFile === undefined ? target.user : readFileSync(userFile, 'utf8').trim()),
    password: () => (passwordFile === undefined ? target.password.reveal() : readSecret(passwordFile)),
    ssl: sslOf(target),
  };
}

function sslOf({ sslMode, sslCa }: ConfiguredTarget): DatabaseTarget['ssl'] {
  const ca = sslCa === undefined ? {} : { ca: readFileSync(sslCa, 'utf8') };
  switch (sslMode) {
    case 'disable':
      return false;
    case 'require':
      return { rejectUnauthorized: false };
    case 'verify-ca':
      return { ...ca, rejectUnauthorized: true, checkServerIdentity: () => undefined };
    case 'verify-full':
      return { ...ca, rejectUnauthorized: true };
  }
}

function embeddedTarget(url: string): DatabaseTarget {
  const { hostname: host, port, pathname, username, password } = new URL(url);
  return {
    host,
    port: Number(port),
    database: pathname.slice(1),
    user: () => decodeURIComponent(username),
    password: () => decodeURIComponent(password),
    ssl: false,
  };
}

async function prepareSchema(db: Database, migrate: boolean, logger: Logger): Promise<void> {
  if (migrate)
    await migrateUp(db, migrationSources, ({ slice, number, name }) =>
      logger.info({ migration: `${slice}/${number} ${name}` }, 'migration applied'),
    );
  const status = await migrationStatus(db, migrationSources);
  const missing = status.filter(({ state }) => state === 'pending' || state === 'changed');
  if (missing.length > 0)
    throw new AppError(
      'SYS_PLATFORM_SCHEMA_OUTDATED',
      'unavailable',
      `the database lacks ${missing.length} migrations, run \`redrive migrate up\`: ` +
        missing.map(({ slice, number, name }) => `${slice}/${number} ${name}`).join(', '),
    );
}

export function createBroker(kafka: KafkaConfig): Broker | null {
  if (!kafka.enabled) return null;
  if (kafka.local) return createLocalBroker();
  const { sasl, tls } = kafka;
  const file = (path: string | undefined): string | undefined =>
    path === undefined ? undefined : readFileSync(path, 'utf8');
  return createKafkaBroker({
    brokers: kafka.brokers,
    clientId: 'redrive',
    securityProtocol: kafka.securityProtocol,
    ...(sasl === undefined
      ? {}
      : {
          sasl: {
            mechanism: sasl.mechanism,
            username: () => (sasl.usernameFile === undefined ? sasl.username : readSecret(sasl.usernameFile)),
            password: () =>
              sasl.passwordFile === undefined ? sasl.password.reveal() : readSecret(sasl.passwordFile),
          },
        }),
    ...(tls === undefined ? {} : { tls: { ca: file(tls.ca), cert: file(tls.cert), key: file(tls.key) } }),
  });
}

/** Cheap and harmless when several replicas do it, so no lease is needed. */
function housekeeping(db: Database, logger: Logger): Service {
  return createLoop({
    name: 'housekeeping',
    everyMs: 3_600_000,
    run: () => forgetOldNotifyEvents(db),
    onError: (error) => logger.warn({ err: error }, 'housekeeping failed'),
  });
}

function kafkaName(kafka: KafkaConfig): string {
  if (!kafka.enabled) return 'off';
  return kafka.local ? 'local, in this process' : kafka.brokers.join(',');
}
