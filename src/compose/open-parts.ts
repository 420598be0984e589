import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Config } from '../config/config.ts';
import { sleep, systemClock } from '../kernel/clock.ts';
import { createProtection } from '../kernel/protect/protection.ts';
import type { Broker } from '../platform/broker/port.ts';
import { maskPayloadsBy } from '../platform/http/access/payload-masks.ts';
import { createCredentialWatch, exportPool } from '../platform/postgres/database-metrics.ts';
import type { Database } from '../platform/postgres/database.ts';
import type { MigrationSource } from '../platform/postgres/migrate.ts';
import type { Logger } from '../platform/telemetry/logger.ts';
import { createMetrics, type Metrics } from '../platform/telemetry/metrics.ts';
import { startTracing } from '../platform/telemetry/tracing.ts';
import { NamedLeases } from '../platform/work/named-leases.ts';
import { createReplica } from '../platform/work/replicas.ts';
import { createWorkWatch, type WorkWatch } from '../platform/work/work-watch.ts';
import type { Worker } from '../platform/work/work.ts';
import { openBroker } from './create-broker.ts';
import { openDatabase } from './open-database.ts';
import { openSchema } from './open-schema.ts';
import { openWake } from './open-wake.ts';
import type { Close } from './stop-system.ts';

export type PartsOptions = Readonly<{
  logger: Logger;
  /** In the order of application; the schema of each slice has its name. */
  migrationSources: readonly MigrationSource[];
  /** Wraps parts of the system, to inject faults in tests. */
  wrap?: Readonly<{ database?: (db: Database) => Database; broker?: (broker: Broker) => Broker }>;
}>;

/** What all slices share. */
export type Parts = Awaited<ReturnType<typeof openParts>>;

/** A database that does not answer must not use up the time for the rest. */
const closeWithinMs = 2000;

/** Telemetry, database, broker, and what workers need. Adds to `opened` what has to be closed. */
export async function openParts(
  config: Config,
  { logger, wrap, migrationSources }: PartsOptions,
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
  const slicesWithSchema = migrationSources.map(({ slice }) => slice);
  const watch = createWorkWatch(metrics, slicesWithSchema);
  const worker = createWorker(db, { metrics, watch, logger });
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
  return {
    db,
    pool,
    schema,
    slicesWithSchema,
    embedded,
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

function createWorker(
  db: Database,
  { metrics, watch, logger }: Readonly<{ metrics: Metrics; watch: WorkWatch; logger: Logger }>,
): Worker {
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
  const leases = new NamedLeases(worker, {
    onError: (error) => logger.warn({ err: error }, 'failed to renew or claim named leases; retrying'),
  });
  return { ...worker, leases };
}
