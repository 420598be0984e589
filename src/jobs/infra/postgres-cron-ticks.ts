import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { rowsOf } from '../../platform/postgres/rows-of.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import type { CronJob } from '../domain/cron-ticks.ts';
import type { CronTicks } from '../usecase/fire-cron.ts';

/** A schedule is the same as long as its text and its time zone are; one that is changed begins anew. */
function scheduleText({ schedule, timeZone }: CronJob): string {
  return `${schedule} ${timeZone}`;
}

/**
 * What was fired further ahead than this was fired by a clock that has been put right since, and does not count:
 * else a schedule would stand still until that day comes.
 */
export const believable: Sql = sql`now() + interval '1 day'`;

/** A process that was stopped between its look and its writing looks again instead. */
const decidedWithin: Sql = sql`interval '30 seconds'`;

export function createPostgresCronTicks(db: Database): CronTicks {
  return {
    async read(jobs) {
      const told = rowsOf<readonly [CronJob, number]>(
        sql`told`,
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
          WHERE t.name = told.name AND t.schedule = told.schedule AND t.tick_at <= ${believable}
          ORDER BY t.tick_at DESC LIMIT 1) AS last
        FROM ${told} ORDER BY told.place`);
      return { now: rows[0]?.now ?? new Date(Number.NaN), last: rows.map(({ last }) => last) };
    },

    async begin(job, now) {
      await db.query(sql`
        INSERT INTO jobs.cron_ticks (name, tick_at, schedule)
        SELECT ${job.name}, ${now}, ${scheduleText(job)}
        WHERE NOT EXISTS (
          SELECT 1 FROM jobs.cron_ticks t
          WHERE t.name = ${job.name} AND t.schedule = ${scheduleText(job)} AND t.tick_at <= ${believable})
        ON CONFLICT DO NOTHING`);
    },

    fire: (job, { tickAt, decidedAt }) =>
      db.transaction(async (tx) => {
        if (!(await takeTick(tx, job, { tickAt, decidedAt }))) return null;
        const waiting = await findWaiting(tx, job, tickAt);
        const jobId = waiting ?? (await enqueue(tx, job));
        await tx.query(sql`
          UPDATE jobs.cron_ticks SET job_id = ${jobId} WHERE name = ${job.name} AND tick_at = ${tickAt}`);
        return { jobId, isNew: waiting === null };
      }),
  };
}

/** The primary key decides whose it is; never older than one that was fired. */
async function takeTick(
  tx: Queryable,
  job: CronJob,
  { tickAt, decidedAt }: Readonly<{ tickAt: Date; decidedAt: Date }>,
): Promise<boolean> {
  const rows = await tx.query(sql`
    INSERT INTO jobs.cron_ticks (name, tick_at, schedule)
    SELECT ${job.name}, ${tickAt}, ${scheduleText(job)}
    WHERE clock_timestamp() < ${decidedAt}::timestamptz + ${decidedWithin}
      AND NOT EXISTS (
        SELECT 1 FROM jobs.cron_ticks newer
        WHERE newer.name = ${job.name} AND newer.job_id IS NOT NULL
          AND newer.tick_at > ${tickAt} AND newer.tick_at <= ${believable})
    ON CONFLICT DO NOTHING
    RETURNING tick_at`);
  return rows.length > 0;
}

/**
 * The job of the time before, if it is the same and nobody has begun it: its queue is paused, or long. A second one
 * would do the same right after it; a weekend's pause must not become thousands of jobs. One that was begun and put
 * off may come back long after the next times.
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
  if (row === undefined) throw new Error('jobs.enqueue gave no row');
  return row.job_id;
}
