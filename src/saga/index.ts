import type { MigrationSource } from '../platform/postgres/migrate.ts';

export const sagaMigrations: MigrationSource = {
  slice: 'saga',
  directory: new URL('infra/migrations/', import.meta.url),
};
