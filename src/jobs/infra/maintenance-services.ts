import type { Service } from '../../kernel/service.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { createNamedLease } from '../../platform/postgres/named-lease.ts';
import type { Worker } from '../../platform/postgres/work.ts';
import type { Logger } from '../../platform/telemetry/logger.ts';
import type { Metrics } from '../../platform/telemetry/metrics.ts';
import type { CronJob } from '../domain/cron-ticks.ts';
import { createCronService } from './cron-service.ts';
import { createJobFigures } from './job-figures.ts';
import type { JobMetrics } from './job-metrics.ts';
import { createRetentionService } from '../../platform/postgres/retention-service.ts';
import { createPostgresCronTicks } from './postgres-cron-ticks.ts';
import {
  createPostgresJobRetention,
  type JobRetentionOptions,
  type RemovedJobs,
} from './postgres-job-retention.ts';

export type MaintenanceDeps = Readonly<{
  db: Database;
  worker: Worker;
  metrics: Metrics;
  log: Logger;
  counts: Pick<JobMetrics, 'enqueued'>;
  options: JobRetentionOptions & Readonly<{ cron: readonly CronJob[] }>;
}>;

/** Schedules, which every process looks at; figures and retention, which one does for all. */
export function createMaintenance({
  db,
  worker,
  metrics,
  log,
  counts,
  options,
}: MaintenanceDeps): readonly Service[] {
  const figures = createJobFigures(metrics, { db, queues: options.queues.map(({ name }) => name) });
  const cron = createCronService({ ticks: createPostgresCronTicks(db), log, counts }, options.cron);
  return [
    ...(options.cron.length === 0 ? [] : [cron]),
    createNamedLease(worker, {
      name: 'jobs.figures',
      leaseMs: 15_000,
      work: (held) => figures.export(held),
      onError: (error) => log.warn({ err: error }, 'the figures of the jobs could not be taken'),
    }),
    createRetentionService(worker, {
      name: 'jobs.retention',
      retention: createPostgresJobRetention(db, options),
      onRemoved: (removed) => tellOfRemoved(log, removed),
      onError: (error) => log.warn({ err: error }, 'old jobs could not be removed'),
    }),
  ];
}

function tellOfRemoved(log: Logger, removed: RemovedJobs): void {
  const { unresolved, ...others } = removed;
  if (Object.values(others).some((count) => count > 0)) log.info(others, 'what was over was removed');
  if (unresolved > 0)
    log.warn(
      { count: unresolved },
      'dead letters that nobody has dealt with were removed: their keep was over',
    );
}
