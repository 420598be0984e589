import type { MigrationSource } from '../platform/postgres/migrate.ts';

export const outboxMigrations: MigrationSource = {
  slice: 'outbox',
  directory: new URL('infra/migrations/', import.meta.url),
};
