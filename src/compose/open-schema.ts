import type { Config } from '../config/config.ts';
import type { Database } from '../platform/postgres/database.ts';
import type { MigrationSource } from '../platform/postgres/migrate.ts';
import type { Logger } from '../platform/telemetry/logger.ts';
import type { Metrics } from '../platform/telemetry/metrics.ts';
import { exportVersions } from './process-metrics.ts';
import { createSchemaGate, type SchemaGate } from './schema-gate.ts';

/** Applies or reads the migrations, and exports their numbers. */
export function openSchema(
  db: Database,
  sources: readonly MigrationSource[],
  { config, metrics, logger }: Readonly<{ config: Config; metrics: Metrics; logger: Logger }>,
): Promise<SchemaGate> {
  return createSchemaGate(db, {
    sources,
    migrate: config.database.migrate,
    version: config.app.version,
    logger,
    onStatus: exportVersions(metrics, config.app),
  });
}
