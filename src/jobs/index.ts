import type { Clock } from '../kernel/clock.ts';
import { createLoop } from '../kernel/loop.ts';
import type { Service } from '../kernel/service.ts';
import { createSoloGate } from '../kernel/solo-gate.ts';
import type { HttpApp } from '../platform/http/http-app.ts';
import type { HealthCheck } from '../platform/http/readiness.ts';
import type { Database } from '../platform/postgres/database.ts';
import type { MigrationSource } from '../platform/postgres/migrate.ts';
import { sql } from '../platform/postgres/sql.ts';
import type { Wake } from '../platform/postgres/wake.ts';
import type { Worker } from '../platform/postgres/work.ts';
import type { Logger } from '../platform/telemetry/logger.ts';
import type { Metrics } from '../platform/telemetry/metrics.ts';
import { addJobsRoutes, type JobsRouteDeps } from './adapter/http-routes.ts';
import type { CronJob } from './domain/cron-ticks.ts';
import type { QueueSettings } from './domain/queue-settings.ts';
import { createActing } from './infra/acting.ts';
import { createJobMetrics } from './infra/job-metrics.ts';
import { createMaintenance } from './infra/maintenance-services.ts';
import { createPostgresJobReader } from './infra/postgres-job-reader.ts';
import { createPostgresJobStore } from './infra/postgres-job-store.ts';
import { createPostgresQueueBook, writeConfiguredQueues } from './infra/postgres-queue-book.ts';
import { createPostgresQueueStore } from './infra/postgres-queue-store.ts';
import { createPushers } from './infra/push-services.ts';
import { createQueueLabels } from './infra/queue-labels.ts';
import type { JobStore } from './usecase/ports.ts';
import { createReaper } from './usecase/reap-lost.ts';

export type { CronJob };

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
  /** Schedules, retention, figures. */
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
  const counts = createJobMetrics(deps.metrics, log, {
    labels: createQueueLabels(options.queues.map(({ name }) => name)),
    clock: deps.clock,
  });
  const book = createPostgresQueueBook(db);
  const jobStoreFor = (on: Database, as: Worker): JobStore =>
    createPostgresJobStore(on, as, {
      book,
      onSettleRetry: (error) => log.warn({ err: error }, 'settling is tried again'),
      onReaped: (job) => counts.lost(job),
    });
  const store = jobStoreFor(db, worker);
  const refreshing = createLoop({
    name: 'jobs book',
    everyMs: refreshEveryMs,
    run: () => book.refresh(),
    onError: (error) => log.warn({ err: error }, 'what holds for the queues could not be read'),
  });

  const reap = createReaper({ store, clock: deps.clock, ask: () => db.query(sql`SELECT 1`) });

  const pushed = options.queues.filter(({ target }) => target !== null);
  const routeDeps: JobsRouteDeps = {
    store,
    reader: createPostgresJobReader(db),
    queueStore: createPostgresQueueStore(db),
    settingsOf: (queue) => book.settingsOf(queue),
    pushed: new Set(pushed.map(({ name }) => name)),
    onEnqueued: (queue) => counts.enqueued(queue),
    onPause: ({ isPaused, ...asked }) => log.info(asked, isPaused ? 'a queue was paused' : 'a queue goes on'),
    ...createActing({ ...deps, log, counts, book, jobStoreFor }),
  };

  const pushers = createPushers(
    { db, store, book, wake: deps.wake, clock: deps.clock, log, solo: createSoloGate(), counts },
    options.queues,
  );

  return {
    addRoutes: (app) => addJobsRoutes(app, routeDeps),
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
        const reaped = await reap();
        if (reaped > 0) log.warn({ count: reaped }, 'attempts of lost workers were ended');
      },
      onError: (error) => log.warn({ err: error }, 'the reaper failed'),
    }),
    pushers: pushers.services,
    maintenance: createMaintenance({ db, worker, metrics: deps.metrics, log, counts, options }),
    checks: pushers.checks,
  };
}
