import { sleep, type Clock } from '../kernel/clock.ts';
import { createLoop } from '../kernel/loop.ts';
import type { Service } from '../kernel/service.ts';
import { createGauges } from '../platform/work/gauges.ts';
import type { Replica } from '../platform/work/replicas.ts';
import { createSoloGate } from '../platform/work/solo-gate.ts';
import type { MaskPayloads } from '../platform/http/access/payload-masks.ts';
import type { HttpApp } from '../platform/http/http-app.ts';
import type { HealthCheck } from '../platform/http/readiness.ts';
import type { Database } from '../platform/postgres/database.ts';
import type { MigrationSource } from '../platform/postgres/migrate.ts';
import { createWaits, idlePollMs } from '../platform/work/wait-for-due.ts';
import type { Wake } from '../platform/work/wake.ts';
import type { Worker } from '../platform/work/work.ts';
import type { Logger } from '../platform/telemetry/logger.ts';
import type { Metrics } from '../platform/telemetry/metrics.ts';
import { createJobFinder } from './browse/find-items.ts';
import { addJobRoutes } from './browse/job-routes.ts';
import { listQueues } from './browse/list-queues.ts';
import { addQueueRoutes } from './browse/queue-routes.ts';
import { nextDueInMs } from './claim-jobs.ts';
import { jobsChannel, queuesChannel } from './channels.ts';
import { addActionRoutes } from './decide/action-routes.ts';
import type { CronJob } from './domain/cron-schedule.ts';
import type { QueueSettings } from './domain/queue-settings.ts';
import { addEnqueueRoute } from './enqueue/enqueue-route.ts';
import { createJobMetrics, type JobMetrics } from './job-metrics.ts';
import type { WorkDeps } from './jobs-table.ts';
import { createPuller } from './pull/pull-jobs.ts';
import { createWaitForJobs } from './pull/wait-for-jobs.ts';
import { addWorkerRoutes } from './pull/worker-routes.ts';
import { createPushers, type PushDeps } from './push/push-services.ts';
import { createQueues, writeConfiguredQueues, type Queues } from './queues.ts';
import { createJobsReaper } from './run/reap-jobs.ts';
import { QueueWorker } from './run/worker.ts';
import { createCronService } from './schedule/cron-service.ts';
import { addScheduleRoutes } from './schedule/schedule-routes.ts';
import { tickRetention } from './schedule/cron-ticks.ts';
import { jobGauges } from './upkeep/gauges.ts';
import { createJobRetention } from './upkeep/retention.ts';

export { jobsForInbox } from './browse/jobs-for-inbox.ts';
export { watchedJobs } from './browse/watched-jobs.ts';
export type { CronJob };

export type ConfiguredQueue = QueueSettings &
  Readonly<{
    name: string;
    /** Handlers at once in one process. */
    concurrency: number;
    retentionMs: number;
    deadRetentionMs: number;
    /** Where the server pushes its jobs to; null if workers claim them. */
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
  replica: Pick<Replica, 'workers'>;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  maskPayloads: MaskPayloads;
  options: Readonly<{
    retentionMs: number;
    deadRetentionMs: number;
    queues: readonly ConfiguredQueue[];
    cron: readonly CronJob[];
  }>;
}>;

export type Jobs = Readonly<{
  addRoutes(app: HttpApp): void;
  /** Jobs, by id, dedupe key or trace. */
  find: ReturnType<typeof createJobFinder>;
  /** Keeps this process's copy of the queue settings; started first, in every process. */
  queues: Service;
  /** Releases jobs of lost workers; in every process that runs jobs or serves them over HTTP. */
  reaper: Service;
  /** Push jobs to the targets of their queues. */
  pushers: readonly Service[];
  /** Schedules, retention, gauges. */
  maintenance: readonly Service[];
  checks: readonly HealthCheck[];
}>;

export const jobsMigrations: MigrationSource = {
  slice: 'jobs',
  directory: new URL('migrations/', import.meta.url),
};

/** How soon a process notices changed queue settings without LISTEN. */
const refreshEveryMs = 2000;
/** Renewed while the call lasts. The job of a lost process waits this long. */
const pushLeaseMs = 30_000;
/** Pull workers may ask for shorter leases; if one of them expires, it is released a few seconds late. */
const usualLeaseMs = 10_000;
/** A rate limit makes room in the next window, and no notification announces that. */
const pollLimitedMs = 200;

export function createJobs(deps: JobsDeps): Jobs {
  const { db, worker, options } = deps;
  const log = deps.logger.child({ slice: 'jobs' });
  const queueNames = options.queues.map(({ name }) => name);
  const counts = createJobMetrics(deps.metrics, log, queueNames);
  const queues = createQueues(db);
  const work: WorkDeps & Readonly<{ queues: Queues }> = {
    db,
    worker,
    queues,
    onSettleRetry: (error) => log.warn({ err: error }, 'retrying settle'),
  };
  const pushers = createPushers(
    { ...work, ...deps, log, createWorker: createPushWorker({ ...deps, log, counts, work }) },
    options.queues,
  );
  return {
    addRoutes: (app) => addRoutes(app, { ...deps, log, counts, work }),
    find: createJobFinder({ db, masking: deps.maskPayloads('queues', 'jobs:payloads:view') }),
    queues: createQueueRefresh(queues, { ...deps, log }),
    reaper: createJobsReaper(
      { ...work, onReaped: (job) => counts.reaped(job) },
      {
        shortestLeaseMs: usualLeaseMs,
        onReaped: (count) => log.warn({ count }, 'released jobs of lost workers'),
        onError: (error) => log.warn({ err: error }, 'reaper failed'),
      },
    ),
    pushers: pushers.services,
    maintenance: createMaintenance(deps, log, counts),
    checks: pushers.checks,
  };
}

type Parts = JobsDeps &
  Readonly<{ log: Logger; counts: JobMetrics; work: WorkDeps & Readonly<{ queues: Queues }> }>;

function addRoutes(app: HttpApp, parts: Parts): void {
  const { db, clock, wake, log, counts, work, options } = parts;
  const masking = parts.maskPayloads('queues', 'jobs:payloads:view');
  const { settingsOf } = work.queues;
  const pushed = new Set(options.queues.filter(({ target }) => target !== null).map(({ name }) => name));
  const listing = { db, settingsOf, pushed, masking };
  const queueNames = async (): Promise<readonly string[]> =>
    (await listQueues(listing)).map(({ name }) => name);
  addEnqueueRoute(app, { db, counts });
  addJobRoutes(app, { db, masking });
  addQueueRoutes(app, listing);
  addScheduleRoutes(app, { db, cron: options.cron });
  const puller = createPuller({ ...work, counts, waitForWork: createWaitForJobs(wake) });
  addWorkerRoutes(app, { ...work, counts, puller });
  addActionRoutes(app, { db, log, clock, queueNames, masking });
}

function createQueueRefresh(
  queues: Queues,
  { db, worker, wake, log, options }: Pick<Parts, 'db' | 'worker' | 'wake' | 'log' | 'options'>,
): Service {
  const refreshing = createLoop({
    name: 'jobs queues',
    everyMs: 0,
    async run(stopping) {
      if (wake.isListening()) await wake.wait(queuesChannel, idlePollMs, stopping);
      else await sleep(refreshEveryMs, stopping);
      await queues.refresh();
    },
    beat: () => worker.watch?.beat('jobs', 'queues'),
    onError: (error) => log.warn({ err: error }, 'failed to load queue settings'),
  });
  return {
    ...refreshing,
    async start() {
      await writeConfiguredQueues(db, options.queues);
      await queues.refresh();
      await refreshing.start();
    },
  };
}

function createPushWorker({ wake, log, counts, work }: Parts): PushDeps['createWorker'] {
  const solo = createSoloGate();
  return ({ claim, readPayload, ...options }) => {
    const { queue } = options;
    const pollMs = (ms: number): number => (work.queues.isLimited(queue) ? Math.min(ms, pollLimitedMs) : ms);
    const waits = createWaits(wake, jobsChannel(queue), () => nextDueInMs(work.db, queue));
    return new QueueWorker(
      {
        ...work,
        solo,
        async claim(request) {
          const claimed = await claim(request);
          counts.claimed(queue, claimed.jobs);
          return claimed;
        },
        readPayload,
        waitForWork: (_queue, ms, signal) => waits.waitForWork(pollMs(ms), signal),
        waitForDue: (_queue, ms, signal) => waits.waitForDue(pollMs(ms), signal),
        onSettled: (settlement, status) => counts.settled(queue, settlement, status),
        onError: (what, error) => log.warn({ err: error, queue }, `${what} of pushed jobs failed`),
      },
      // Nothing is claimed ahead: another process could push a job that waits here.
      { ...options, maxPrefetch: 0, leaseMs: pushLeaseMs },
    );
  };
}

/** Schedules, which every process runs; gauges and retention, which one process runs for all. */
function createMaintenance(
  { db, worker, metrics, options }: JobsDeps,
  log: Logger,
  counts: JobMetrics,
): readonly Service[] {
  const cron = createCronService({ db, worker, log, counts }, options.cron);
  const gauges = jobGauges(metrics, { db, queues: options.queues.map(({ name }) => name) });
  return [
    ...(options.cron.length === 0 ? [] : [cron]),
    createGauges(worker, { name: 'jobs.gauges', ...gauges, log }),
    createJobRetention(worker, log, options, [tickRetention(db, options.cron)]),
  ];
}
