import { sleep } from '../../kernel/clock.ts';
import { createLoop } from '../../kernel/loop.ts';
import type { Service } from '../../kernel/service.ts';
import type { Logger } from '../../platform/telemetry/logger.ts';
import type { CronJob } from '../domain/cron-ticks.ts';
import { fireCron, openCronJobs, type CronTicks } from '../usecase/fire-cron.ts';
import type { JobMetrics } from './job-metrics.ts';

export type CronServiceDeps = Readonly<{
  ticks: CronTicks;
  log: Logger;
  counts: Pick<JobMetrics, 'enqueued'>;
}>;

const afterErrorMs = 5000;
/** Between two looks, whatever the clocks say. */
const restMs = 100;

/** Looks when the next schedule comes, and once a minute in any case, in every process that works. */
export function createCronService(
  { ticks, log, counts }: CronServiceDeps,
  jobs: readonly CronJob[],
): Service {
  const opened = openCronJobs(jobs);
  const look = (): Promise<number> =>
    fireCron(
      {
        ticks,
        onFired(job, tickAt, { jobId, isNew }) {
          if (isNew) counts.enqueued(job.queue);
          const facts = { cron: job.name, tick_at: tickAt, job_id: jobId, queue: job.queue };
          log.info(
            facts,
            isNew ? 'a schedule has added its job' : 'a schedule has come while its job still waits',
          );
        },
        onError: (job, error) =>
          log.error({ err: error, cron: job.name, queue: job.queue }, 'a schedule could not add its job'),
      },
      opened,
    );
  return createLoop({
    name: 'jobs cron',
    everyMs: restMs,
    async run(stopping) {
      const begin = performance.now();
      const waitMs = await look().catch((error: unknown) => {
        log.warn({ err: error }, 'the schedules could not be looked at');
        return afterErrorMs;
      });
      await sleep(Math.max(0, waitMs - (performance.now() - begin)), stopping);
    },
    onError: (error) => log.warn({ err: error }, 'the schedules could not be looked at'),
  });
}
