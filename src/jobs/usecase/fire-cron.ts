import { decide, openSchedule, untilNextMs, type CronJob, type Schedule } from '../domain/cron-ticks.ts';

/** What is known of the schedules, the same for all processes. */
export type CronTicks = Readonly<{
  /** The time by the clock of the database, and when each schedule came last, in the order of the jobs. */
  read(jobs: readonly CronJob[]): Promise<Readonly<{ now: Date; last: readonly (Date | null)[] }>>;
  /** Notes that the schedule is known from now on. */
  begin(job: CronJob, now: Date): Promise<void>;
  /** Adds the job of this time; null where somebody else has, or where it has become too late to. */
  fire(job: CronJob, tick: Readonly<{ tickAt: Date; decidedAt: Date }>): Promise<FiredTick | null>;
}>;

/** `isNew` is false where the job of an earlier time still waits: that one is for both. */
export type FiredTick = Readonly<{ jobId: string; isNew: boolean }>;

export type FireCronDeps = Readonly<{
  ticks: CronTicks;
  onFired: (job: CronJob, tickAt: Date, fired: FiredTick) => void;
  onError: (job: CronJob, error: unknown) => void;
}>;

export type OpenCronJob = Readonly<{ job: CronJob; schedule: Schedule }>;

export function openCronJobs(jobs: readonly CronJob[]): readonly OpenCronJob[] {
  return jobs.map((job) => ({ job, schedule: openSchedule(job.schedule, job.timeZone) }));
}

const lookAgainWithinMs = 60_000;

/**
 * Adds the jobs whose time has come, and says after how many milliseconds to look again. Every process looks for
 * itself, without a leader: a time is written down together with its job, and only one can write it. One that fails
 * does not keep the others waiting, and comes again.
 */
export async function fireCron(deps: FireCronDeps, jobs: readonly OpenCronJob[]): Promise<number> {
  const { now, last } = await deps.ticks.read(jobs.map(({ job }) => job));
  for (const [index, { job, schedule }] of jobs.entries()) {
    try {
      await act(deps, job, { decision: decide(schedule, last[index] ?? null, now), now });
    } catch (error) {
      deps.onError(job, error);
    }
  }
  return untilNextMs(
    jobs.map(({ schedule }) => schedule),
    now,
    lookAgainWithinMs,
  );
}

async function act(
  { ticks, onFired }: FireCronDeps,
  job: CronJob,
  { decision, now }: Readonly<{ decision: ReturnType<typeof decide>; now: Date }>,
): Promise<void> {
  switch (decision.does) {
    case 'begin':
      return ticks.begin(job, now);
    case 'fire': {
      const fired = await ticks.fire(job, { tickAt: decision.tickAt, decidedAt: now });
      if (fired !== null) onFired(job, decision.tickAt, fired);
      return;
    }
    case 'wait':
  }
}
