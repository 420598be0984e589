import { sleep } from '../../kernel/clock.ts';
import { createLoop } from '../../kernel/loop.ts';
import type { Worker } from '../../platform/work/work.ts';
import type { Service } from '../../kernel/service.ts';
import type { Database } from '../../platform/postgres/database.ts';
import type { Logger } from '../../platform/telemetry/logger.ts';
import type { CronJob } from '../domain/cron-schedule.ts';
import type { JobMetrics } from '../job-metrics.ts';
import { fireCron, openCronJobs } from './fire-cron.ts';

export type CronServiceDeps = Readonly<{
  db: Database;
  worker: Pick<Worker, 'watch'>;
  log: Logger;
  counts: Pick<JobMetrics, 'enqueued'>;
}>;

/** A schedule has a resolution of seconds; sooner would only fill the log. */
const afterErrorMs = 5000;
/** Between two rounds, whatever the clocks say. */
const restMs = 100;

/** Runs when the next tick comes, and at least once a minute, in every process with the role workers. */
export function createCronService(
  { db, worker, log, counts }: CronServiceDeps,
  jobs: readonly CronJob[],
): Service {
  const opened = openCronJobs(jobs);
  const fire = (): Promise<number> =>
    fireCron(
      {
        db,
        onFired(job, tickAt, { jobId, isNew }) {
          if (isNew) counts.enqueued(job.queue);
          const facts = { cron: job.name, tick_at: tickAt, job_id: jobId, queue: job.queue };
          log.info(
            facts,
            isNew ? 'added a scheduled job' : 'skipped a scheduled job: the previous one still waits',
          );
        },
        onError: (job, error) =>
          log.error({ err: error, cron: job.name, queue: job.queue }, 'failed to add a scheduled job'),
      },
      opened,
    );
  const beat = (): void => worker.watch?.beat('jobs', 'cron');
  return createLoop({
    name: 'jobs cron',
    everyMs: restMs,
    async run(stopping) {
      const begin = performance.now();
      const waitMs = await fire().then(
        (ms) => {
          beat();
          return ms;
        },
        (error: unknown) => {
          log.warn({ err: error }, 'failed to read the schedules');
          return afterErrorMs;
        },
      );
      await sleep(Math.max(0, waitMs - (performance.now() - begin)), stopping);
    },
    onError: (error) => log.warn({ err: error }, 'failed to read the schedules'),
  });
}
