import type { Service } from '../../kernel/service.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { createNamedLease } from '../../platform/postgres/named-lease.ts';
import type { Worker } from '../../platform/postgres/work.ts';
import type { Logger } from '../../platform/telemetry/logger.ts';
import type { Metrics } from '../../platform/telemetry/metrics.ts';
import { createPostgresSagaRetention, type SagaRetentionOptions } from './postgres-saga-retention.ts';
import { createSagaFigures } from './saga-figures.ts';
import { createRetentionService } from '../../platform/postgres/retention-service.ts';

export type MaintenanceDeps = Readonly<{
  db: Database;
  worker: Worker;
  metrics: Metrics;
  log: Logger;
  retention: SagaRetentionOptions;
}>;

/** What one replica does for all. */
export function createMaintenance({
  db,
  worker,
  metrics,
  log,
  retention,
}: MaintenanceDeps): readonly Service[] {
  const figures = createSagaFigures(metrics, { db });
  return [
    createNamedLease(worker, {
      name: 'saga.figures',
      leaseMs: 15_000,
      work: (held) => figures.export(held),
      onError: (error) => log.warn({ err: error }, 'the figures of the sagas could not be taken'),
    }),
    createRetentionService(worker, {
      name: 'saga.retention',
      retention: createPostgresSagaRetention(db, retention),
      onRemoved: (removed) => {
        if (Object.values(removed).some((count) => count > 0))
          log.info(removed, 'sagas that have ended were archived, and old ones removed');
      },
      onError: (error) => log.warn({ err: error }, 'old sagas could not be archived'),
    }),
  ];
}
