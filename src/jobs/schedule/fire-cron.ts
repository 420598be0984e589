import type { Database } from '../../platform/postgres/database.ts';
import { decide, openSchedule, untilNextMs, type CronJob, type Schedule } from '../domain/cron-schedule.ts';
import { fireTick, readTicks, startSchedule, type FiredTick } from './cron-ticks.ts';

export type FireCronDeps = Readonly<{
  db: Database;
  onFired: (job: CronJob, tickAt: Date, fired: FiredTick) => void;
  onError: (job: CronJob, error: unknown) => void;
}>;

export type OpenCronJob = Readonly<{ job: CronJob; schedule: Schedule }>;

export function openCronJobs(jobs: readonly CronJob[]): readonly OpenCronJob[] {
  return jobs.map((job) => ({ job, schedule: openSchedule(job.schedule, job.timeZone) }));
}

/** Timers follow the process, cron the wall clock; a changed clock is noticed after this time. */
const maxWaitMs = 60_000;

/**
 * Adds the jobs whose tick has come, and returns after how many milliseconds to look again. Every process does so, and
 * none is the leader: a tick is written together with its job, and only one process can write it. A schedule that fails
 * does not delay the others, and is tried again.
 */
export async function fireCron(deps: FireCronDeps, jobs: readonly OpenCronJob[]): Promise<number> {
  const { now, last } = await readTicks(
    deps.db,
    jobs.map(({ job }) => job),
  );
  for (const [index, { job, schedule }] of jobs.entries()) {
    try {
      await run(deps, job, { decision: decide(schedule, last[index] ?? null, now), now });
    } catch (error) {
      deps.onError(job, error);
    }
  }
  return untilNextMs(
    jobs.map(({ schedule }) => schedule),
    now,
    maxWaitMs,
  );
}

async function run(
  { db, onFired }: FireCronDeps,
  job: CronJob,
  { decision, now }: Readonly<{ decision: ReturnType<typeof decide>; now: Date }>,
): Promise<void> {
  switch (decision.does) {
    case 'start':
      return startSchedule(db, job, now);
    case 'fire': {
      const fired = await fireTick(db, job, { tickAt: decision.tickAt, decidedAt: now });
      if (fired !== null) onFired(job, decision.tickAt, fired);
      return;
    }
    case 'wait':
  }
}
