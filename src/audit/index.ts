import type { MigrationSource } from '../platform/postgres/migrate.ts';

export const auditMigrations: MigrationSource = {
  slice: 'audit',
  directory: new URL('migrations/', import.meta.url),
};
