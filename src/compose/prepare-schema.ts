import { AppError } from '../kernel/errors.ts';
import type { Database } from '../platform/postgres/database.ts';
import {
  migrateUp,
  migrationStatus,
  type MigrationSource,
  type MigrationStatus,
} from '../platform/postgres/migrate.ts';
import type { Logger } from '../platform/telemetry/logger.ts';

/** Applies the migrations, or only checks that all are applied. */
export async function prepareSchema(
  db: Database,
  sources: readonly MigrationSource[],
  { migrate }: Readonly<{ migrate: boolean }>,
  logger: Logger,
): Promise<readonly MigrationStatus[]> {
  if (migrate)
    await migrateUp(db, sources, ({ slice, number, name }) =>
      logger.info({ migration: `${slice}/${number} ${name}` }, 'applied migration'),
    );
  const status = await migrationStatus(db, sources);
  const missing = status.filter(({ state }) => state === 'pending' || state === 'changed');
  if (missing.length > 0)
    throw new AppError(
      'SYS_PLATFORM_SCHEMA_OUTDATED',
      'unavailable',
      `${missing.length} migrations are missing, run \`redrive migrate up\`: ` +
        missing.map(({ slice, number, name }) => `${slice}/${number} ${name}`).join(', '),
    );
  return status;
}
