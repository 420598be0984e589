import type { MigrationSource } from '../platform/postgres/migrate.ts';

export const jobsMigrations: MigrationSource = {
  slice: 'jobs',
  directory: new URL('infra/migrations/', import.meta.url),
};
