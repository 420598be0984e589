import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { unnestRows } from '../../platform/postgres/unnest-rows.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { deleteTask, type RetentionTask } from '../../platform/work/retention-tasks.ts';
import type { CronJob } from '../domain/cron-schedule.ts';

/** A schedule whose text or time zone changes starts anew. */
function scheduleText({ schedule, timeZone }: CronJob): string {
  return `${schedule} ${timeZone}`;
}

/**
 * A later tick was fired by a clock that was wrong and has been corrected since. It is ignored: otherwise the schedule
 * would not run until that day.
 */
const latestValid: Sql = sql`now() + interval '1 day'`;

/** A process that was suspended after its decision decides again. */
const decidedWithin: Sql = sql`interval '30 seconds'`;

/** The database's time, and the last tick of each schedule, in the order of the jobs. */
export async function readTicks(
  db: Queryable,
  jobs: readonly CronJob[],
): Promise<Readonly<{ now: Date; last: readonly (Date | null)[] }>> {
  const configured = unnestRows<readonly [CronJob, number]>(
    sql`configured`,
    jobs.map((job, index) => [job, index] as const),
    [
      [sql`name`, sql`text[]`, ([{ name }]) => name],
      [sql`schedule`, sql`text[]`, ([job]) => scheduleText(job)],
      [sql`place`, sql`int[]`, ([, index]) => index],
    ],
  );
  const rows = await db.query<{ now: Date; last: Date | null }>(sql`
    SELECT now() AS now, (
      SELECT t.tick_at FROM jobs.cron_ticks t
      WHERE t.name = configured.name AND t.schedule = configured.schedule AND t.tick_at <= ${latestValid}
      ORDER BY t.tick_at DESC LIMIT 1) AS last
    FROM ${configured} ORDER BY configured.place`);
  return { now: rows[0]?.now ?? new Date(Number.NaN), last: rows.map(({ last }) => last) };
}

/** Records that the schedule is known from now on. */
export async function startSchedule(db: Queryable, job: CronJob, now: Date): Promise<void> {
  await db.query(sql`
    INSERT INTO jobs.cron_ticks (name, tick_at, schedule)
    SELECT ${job.name}, ${now}, ${scheduleText(job)}
    WHERE NOT EXISTS (
      SELECT 1 FROM jobs.cron_ticks t
      WHERE t.name = ${job.name} AND t.schedule = ${scheduleText(job)} AND t.tick_at <= ${latestValid})
    ON CONFLICT DO NOTHING`);
}

export type Tick = Readonly<{ tickAt: Date; decidedAt: Date }>;

/** `isNew` is false if the job of an earlier tick still waits: it serves both ticks. */
export type FiredTick = Readonly<{ jobId: string; isNew: boolean }>;

/** Adds the job of this tick; null if another process has, or if the decision is too old. */
export function fireTick(db: Database, job: CronJob, tick: Tick): Promise<FiredTick | null> {
  return db.transaction(async (tx) => {
    if (!(await takeTick(tx, job, tick))) return null;
    const waiting = await findWaiting(tx, job, tick.tickAt);
    const jobId = waiting ?? (await enqueue(tx, job));
    await tx.query(sql`
      UPDATE jobs.cron_ticks SET job_id = ${jobId} WHERE name = ${job.name} AND tick_at = ${tick.tickAt}`);
    return { jobId, isNew: waiting === null };
  });
}

/** False if another process has this tick, or if a later one was fired. The primary key decides. */
async function takeTick(tx: Queryable, job: CronJob, { tickAt, decidedAt }: Tick): Promise<boolean> {
  const rows = await tx.query(sql`
    INSERT INTO jobs.cron_ticks (name, tick_at, schedule)
    SELECT ${job.name}, ${tickAt}, ${scheduleText(job)}
    WHERE clock_timestamp() < ${decidedAt}::timestamptz + ${decidedWithin}
      AND NOT EXISTS (
        SELECT 1 FROM jobs.cron_ticks newer
        WHERE newer.name = ${job.name} AND newer.job_id IS NOT NULL
          AND newer.tick_at > ${tickAt} AND newer.tick_at <= ${latestValid})
    ON CONFLICT DO NOTHING
    RETURNING tick_at`);
  return rows.length > 0;
}

/**
 * The job of the previous tick, if it is the same and has not been started: its queue is paused, or long. A second job
 * would do the same work right after it, and a queue that is paused for a weekend would collect thousands of them. A
 * job that was started and deferred does not count: it may run long after the next ticks.
 */
async function findWaiting(tx: Queryable, job: CronJob, tickAt: Date): Promise<string | null> {
  const [row] = await tx.query<{ job_id: string }>(sql`
    SELECT j.job_id FROM jobs.job_queue j
    WHERE j.job_id = (
        SELECT t.job_id FROM jobs.cron_ticks t
        WHERE t.name = ${job.name} AND t.tick_at < ${tickAt} AND t.job_id IS NOT NULL
        ORDER BY t.tick_at DESC LIMIT 1)
      AND j.status = 'pending' AND j.retry_count = 0 AND j.deferrals = 0 AND j.run_at <= clock_timestamp()
      AND j.queue = ${job.queue} AND j.payload = ${JSON.stringify(job.payload)}::jsonb`);
  return row?.job_id ?? null;
}

async function enqueue(tx: Queryable, job: CronJob): Promise<string> {
  const [row] = await tx.query<{ job_id: string }>(sql`
    SELECT job_id FROM jobs.enqueue(
      p_queue => ${job.queue}, p_payload => ${JSON.stringify(job.payload)}::jsonb, p_priority => ${job.priority},
      p_max_retries => ${job.maxRetries})`);
  if (row === undefined) throw new Error('jobs.enqueue returned no row');
  return row.job_id;
}

/**
 * The newest tick of a schedule stays: it says what was fired. Older ones stay for a day, for people to read and for a
 * schedule that is changed back. The ticks of a schedule that is not configured are deleted after a week; if it comes
 * back later, it starts anew.
 */
export function tickRetention(
  db: Queryable,
  configured: readonly Readonly<{ name: string }>[],
  batchSize = 1000,
): RetentionTask {
  const names = configured.map(({ name }) => name);
  return deleteTask({ name: 'old cron ticks', count: 'ticks', batchSize }, async (limit) => {
    const rows = await db.query(sql`
      DELETE FROM jobs.cron_ticks t USING (
        SELECT old.name, old.tick_at FROM jobs.cron_ticks old
        WHERE old.tick_at > ${latestValid}
          OR old.fired_at < now() - interval '1 day' AND EXISTS (
               SELECT 1 FROM jobs.cron_ticks newer
               WHERE newer.name = old.name AND newer.tick_at > old.tick_at AND newer.tick_at <= ${latestValid})
          OR old.fired_at < now() - interval '7 days' AND old.name <> ALL (${names}::text[])
        LIMIT ${limit}) AS expired
      WHERE t.name = expired.name AND t.tick_at = expired.tick_at
      RETURNING 1`);
    return rows.length;
  });
}
