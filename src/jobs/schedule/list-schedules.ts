import type { Queryable } from '../../platform/postgres/database.ts';
import { readClock } from '../../platform/postgres/read-clock.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { decide, type CronJob } from '../domain/cron-schedule.ts';
import type { Status } from '../domain/job.ts';
import { readTicks } from './cron-ticks.ts';
import type { OpenCronJob } from './fire-cron.ts';

export type LastRun = Readonly<{
  tickAt: Date;
  firedAt: Date;
  jobId: string;
  /** Null if the job has been deleted since. */
  status: Status | null;
}>;

export type ListedSchedule = Readonly<{
  job: CronJob;
  /** Null if it never comes. */
  nextAt: Date | null;
  /** The tick that has come and that no process has fired yet; null if there is none. */
  dueAt: Date | null;
  /** A process with the role workers has seen this schedule. */
  isKnown: boolean;
  last: LastRun | null;
}>;

export type Schedules = Readonly<{ now: Date; schedules: readonly ListedSchedule[] }>;

type LastRow = Readonly<{
  name: string;
  tick_at: Date;
  fired_at: Date;
  job_id: string;
  status: Status | null;
}>;

/** The schedules of this process's configuration, with what the database knows of them, by name. */
export async function listSchedules(db: Queryable, jobs: readonly OpenCronJob[]): Promise<Schedules> {
  if (jobs.length === 0) return { now: await readClock(db), schedules: [] };
  const { now, last: ticks } = await readTicks(
    db,
    jobs.map(({ job }) => job),
  );
  const runs = await selectLastRuns(db, jobs);
  const schedules = jobs.map(({ job, schedule }, index): ListedSchedule => {
    const lastTick = ticks[index] ?? null;
    const decision = decide(schedule, lastTick, now);
    return {
      job,
      nextAt: schedule.next(now),
      dueAt: decision.does === 'fire' ? decision.tickAt : null,
      isKnown: lastTick !== null,
      last: runs.get(job.name) ?? null,
    };
  });
  return { now, schedules: schedules.toSorted((a, b) => (a.job.name < b.job.name ? -1 : 1)) };
}

async function selectLastRuns(
  db: Queryable,
  jobs: readonly OpenCronJob[],
): Promise<ReadonlyMap<string, LastRun>> {
  const names = jobs.map(({ job }) => job.name);
  const rows = await db.query<LastRow>(sql`
    SELECT wanted.name, t.tick_at, t.fired_at, t.job_id, j.status
    FROM unnest(${names}::text[]) AS wanted (name)
    CROSS JOIN LATERAL (
      SELECT tick_at, fired_at, job_id FROM jobs.cron_ticks
      WHERE name = wanted.name AND job_id IS NOT NULL AND tick_at <= now() + interval '1 day'
      ORDER BY tick_at DESC LIMIT 1) AS t
    LEFT JOIN jobs.job_queue j ON j.job_id = t.job_id`);
  return new Map(
    rows.map(({ name, tick_at: tickAt, fired_at: firedAt, job_id: jobId, status }) => [
      name,
      { tickAt, firedAt, jobId, status },
    ]),
  );
}
