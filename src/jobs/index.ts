import type { Clock } from '../kernel/clock.ts';
import { createLoop } from '../kernel/loop.ts';
import type { Service } from '../kernel/service.ts';
import type { HttpApp } from '../platform/http/http-app.ts';
import type { HealthCheck } from '../platform/http/readiness.ts';
import type { Database } from '../platform/postgres/database.ts';
import type { MigrationSource } from '../platform/postgres/migrate.ts';
import type { Wake } from '../platform/postgres/wake.ts';
import type { Worker } from '../platform/postgres/work.ts';
import type { Logger } from '../platform/telemetry/logger.ts';
import type { Metrics } from '../platform/telemetry/metrics.ts';
import type { QueueSettings } from './domain/queue-settings.ts';
import { createPostgresJobStore } from './infra/postgres-job-store.ts';
import { createPostgresQueueBook, writeConfiguredQueues } from './infra/postgres-queue-book.ts';

export type ConfiguredQueue = QueueSettings &
  Readonly<{
    name: string;
    /** In one process. */
    concurrency: number;
    retentionMs: number;
    deadRetentionMs: number;
    /** Where the server pushes its jobs to; null where workers fetch them. */
    target: PushTarget | null;
  }>;

export type PushTarget = Readonly<{
  url: string;
  headers: Readonly<Record<string, () => string>>;
  tls: Readonly<Record<'ca' | 'cert' | 'key', string | undefined>> | undefined;
}>;

export type CronJob = Readonly<{
  name: string;
  schedule: string;
  timeZone: string;
  queue: string;
  payload: unknown;
  priority: number;
  maxRetries: number | null;
}>;

export type JobsDeps = Readonly<{
  db: Database;
  worker: Worker;
  wake: Wake;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  options: Readonly<{
    retentionMs: number;
    deadRetentionMs: number;
    queues: readonly ConfiguredQueue[];
    cron: readonly CronJob[];
  }>;
}>;

export type Jobs = Readonly<{
  addRoutes(app: HttpApp): void;
  /** Knows what holds for each queue; first of all, in every process. */
  book: Service;
  /** Ends the attempts of lost workers; in every process that works on jobs or shows them. */
  reaper: Service;
  /** Pushes jobs to the targets of their queues. */
  pushers: readonly Service[];
  /** What one replica does for all: schedules, retention, figures. */
  maintenance: readonly Service[];
  checks: readonly HealthCheck[];
}>;

export const jobsMigrations: MigrationSource = {
  slice: 'jobs',
  directory: new URL('infra/migrations/', import.meta.url),
};

const reapEveryMs = 1000;
const refreshEveryMs = 2000;

export function createJobs(deps: JobsDeps): Jobs {
  const { db, worker, options } = deps;
  const log = deps.logger.child({ slice: 'jobs' });
  const book = createPostgresQueueBook(db);
  const store = createPostgresJobStore(db, worker, {
    book,
    onSettleRetry: (error) => log.warn({ err: error }, 'settling is tried again'),
  });
  const refreshing = createLoop({
    name: 'jobs book',
    everyMs: refreshEveryMs,
    run: () => book.refresh(),
    onError: (error) => log.warn({ err: error }, 'what holds for the queues could not be read'),
  });

  return {
    addRoutes: () => {},
    book: {
      ...refreshing,
      async start() {
        await writeConfiguredQueues(db, options.queues);
        await book.refresh();
        await refreshing.start();
      },
    },
    reaper: createLoop({
      name: 'jobs reaper',
      everyMs: reapEveryMs,
      async run() {
        const reaped = await store.reap();
        if (reaped > 0) log.warn({ count: reaped }, 'attempts of lost workers were ended');
      },
      onError: (error) => log.warn({ err: error }, 'the reaper failed'),
    }),
    pushers: [],
    maintenance: [],
    checks: [],
  };
}
