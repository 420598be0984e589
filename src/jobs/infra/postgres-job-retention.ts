import type { Queryable } from '../../platform/postgres/database.ts';
import { rowsOf } from '../../platform/postgres/rows-of.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { defaultSettings } from '../domain/queue-settings.ts';
import { believable } from './postgres-cron-ticks.ts';

export type JobRetentionOptions = Readonly<{
  /** How long completed jobs and dead letters stay, of queues that do not say it themselves. */
  retentionMs: number;
  deadRetentionMs: number;
  queues: readonly Readonly<{ name: string; retentionMs: number; deadRetentionMs: number }>[];
  cron: readonly Readonly<{ name: string }>[];
  batchSize?: number;
}>;

export type RemovedJobs = Readonly<{
  completed: number;
  /** Dead letters that somebody had cancelled or discarded. */
  resolved: number;
  /** Dead letters that nobody has dealt with in all that time. */
  unresolved: number;
  /** Lines of the history whose job is gone. */
  orphans: number;
  ticks: number;
  /** Rows of queues that said nothing but the defaults. */
  queues: number;
}>;

/** Keeps the tables of the slice small. */
export type JobRetention = Readonly<{
  /** One walk through what is old enough, batch by batch, until the signal aborts. */
  remove(signal: AbortSignal): Promise<RemovedJobs>;
}>;

export function createPostgresJobRetention(db: Queryable, options: JobRetentionOptions): JobRetention {
  const batchSize = options.batchSize ?? 1000;
  return {
    async remove(signal) {
      const jobs = { completed: 0, resolved: 0, unresolved: 0 };
      for (const range of [madeBefore(options), madeElsewhere])
        await walk(signal, async (after) => {
          const { over, last } = await findOver(db, options, { range, after, limit: batchSize });
          for (const { status, resolution } of over.length === 0 ? [] : await removeJobs(db, over)) {
            if (status === 'completed') jobs.completed += 1;
            else jobs[resolution === null ? 'unresolved' : 'resolved'] += 1;
          }
          return last;
        });
      let orphans = 0;
      for (const table of [sql`jobs.job_attempts`, sql`jobs.job_actions`])
        await walk(signal, async (after) => {
          const { removed, last } = await removeOrphans(db, table, { after, limit: batchSize });
          orphans += removed;
          return last;
        });
      let ticks = 0;
      for (let removed = batchSize; removed === batchSize && !signal.aborted; ticks += removed)
        removed = await removeTicks(db, options.cron, batchSize);
      const queues = await removeQueues(db);
      await removeIdleWorkers(db);
      return { ...jobs, orphans, ticks, queues };
    },
  };
}

type Batch = Readonly<{ after: string; limit: number }>;

const firstId = '00000000-0000-0000-0000-000000000000';

/** `step` looks at the rows after an id and says where it has come to; null at the end. */
async function walk(signal: AbortSignal, step: (after: string) => Promise<string | null>): Promise<void> {
  for (let after: string | null = firstId; after !== null && !signal.aborted;) after = await step(after);
}

type SeenRow = Readonly<{ job_id: string; keep_ms: number; is_over: boolean }>;

/**
 * Walks the primary key from its beginning. Ids begin with the time of their making, and what has ended before a time
 * was made before it: no index on the end is needed, which every settle would pay for. Rows that stay are read once
 * per walk and no more.
 */
function madeBefore({ retentionMs, deadRetentionMs, queues }: JobRetentionOptions): Sql {
  const keepsMs = [{ retentionMs, deadRetentionMs }, ...queues].flatMap((each) => [
    each.retentionMs,
    each.deadRetentionMs,
  ]);
  return sql`j.job_id < ${idAt(Math.min(...keepsMs))}`;
}

async function findOver(
  db: Queryable,
  { retentionMs, deadRetentionMs, queues }: JobRetentionOptions,
  { range, after, limit }: Batch & Readonly<{ range: Sql }>,
): Promise<Readonly<{ over: readonly SeenRow[]; last: string | null }>> {
  const told = rowsOf<JobRetentionOptions['queues'][number]>(sql`told`, queues, [
    [sql`queue`, sql`text[]`, ({ name }) => name],
    [sql`retention_ms`, sql`float8[]`, (queue) => queue.retentionMs],
    [sql`dead_retention_ms`, sql`float8[]`, (queue) => queue.deadRetentionMs],
  ]);
  const seen = await db.query<SeenRow>(sql`
    SELECT j.job_id, keep.ms AS keep_ms,
           j.status IN ('completed', 'dead_letter') AND ${endedBefore(sql`keep.ms`)} AS is_over
    FROM jobs.job_queue j
    LEFT JOIN ${told} ON told.queue = j.queue
    CROSS JOIN LATERAL (
      SELECT CASE j.status WHEN 'completed' THEN COALESCE(told.retention_ms, ${retentionMs}::float8)
                           ELSE COALESCE(told.dead_retention_ms, ${deadRetentionMs}::float8) END AS ms) AS keep
    WHERE j.job_id > ${after} AND ${range}
    ORDER BY j.job_id
    LIMIT ${limit}`);
  return {
    over: seen.filter((row) => row.is_over),
    last: seen.length < limit ? null : (seen.at(-1)?.job_id ?? null),
  };
}

/** The end of a job that was ended by hand may not be written down. */
function endedBefore(ms: Sql): Sql {
  return sql`COALESCE(j.completed_at, j.created_at) < now() - ${ms} * interval '1 millisecond'`;
}

/** Smaller than every id that was made later than so long ago. */
function idAt(agoMs: number): Sql {
  return sql`(
    SELECT (lpad(to_hex(GREATEST(0, date_part('epoch', now()) * 1000 - ${agoMs}::float8)::bigint), 12, '0')
            || repeat('0', 20))::uuid)`;
}

/** An id that a caller has made may say any time: those that say a future one are walked as well, few as they are. */
const madeElsewhere: Sql = sql`j.job_id > ${idAt(-86_400_000)}`;

type RemovedRow = Readonly<{ status: string; resolution: string | null }>;

/** What was requeued meanwhile stays, with its history. */
async function removeJobs(db: Queryable, over: readonly SeenRow[]): Promise<readonly RemovedRow[]> {
  const found = rowsOf<SeenRow>(sql`over`, over, [
    [sql`job_id`, sql`uuid[]`, (row) => row.job_id],
    [sql`keep_ms`, sql`float8[]`, (row) => row.keep_ms],
  ]);
  return db.query<RemovedRow>(sql`
    WITH gone AS (
      DELETE FROM jobs.job_queue j USING ${found}
      WHERE j.job_id = over.job_id AND j.status IN ('completed', 'dead_letter') AND ${endedBefore(sql`over.keep_ms`)}
      RETURNING j.job_id, j.status, j.resolution
    ), attempts AS (
      DELETE FROM jobs.job_attempts WHERE job_id = ANY(ARRAY(SELECT job_id FROM gone))
    ), actions AS (
      DELETE FROM jobs.job_actions WHERE job_id = ANY(ARRAY(SELECT job_id FROM gone))
    )
    SELECT status, resolution FROM gone`);
}

/** Of jobs that went when they were completed, or by somebody's hand. */
async function removeOrphans(
  db: Queryable,
  table: Sql,
  { after, limit }: Batch,
): Promise<Readonly<{ removed: number; last: string | null }>> {
  // By a subquery per id: an anti-join may be planned as a scan of all jobs.
  const [row] = await db.query<{ seen: number; removed: number; last: string | null }>(sql`
    WITH seen AS MATERIALIZED (
      SELECT job_id FROM ${table} WHERE job_id > ${after} ORDER BY job_id LIMIT ${limit}
    ), ids AS (
      SELECT DISTINCT job_id FROM seen
    ), orphans AS MATERIALIZED (
      SELECT ids.job_id FROM ids
      WHERE (SELECT true FROM jobs.job_queue j WHERE j.job_id = ids.job_id) IS NULL
    ), gone AS (
      DELETE FROM ${table} WHERE job_id = ANY(ARRAY(SELECT job_id FROM orphans)) RETURNING 1
    )
    SELECT (SELECT count(*)::int FROM seen) AS seen, (SELECT count(*)::int FROM gone) AS removed,
           (SELECT job_id FROM seen ORDER BY job_id DESC LIMIT 1) AS last`);
  const isLast = row === undefined || row.seen < limit;
  return { removed: row?.removed ?? 0, last: isLast ? null : row.last };
}

/**
 * The newest of a name stays: it says what was fired. Older ones stay for a day, for people, and for a schedule that
 * is changed back. A name that is not configured is forgotten after a week: if it comes back later, it begins anew.
 */
async function removeTicks(db: Queryable, cron: JobRetentionOptions['cron'], limit: number): Promise<number> {
  const rows = await db.query(sql`
    DELETE FROM jobs.cron_ticks t USING (
      SELECT old.name, old.tick_at FROM jobs.cron_ticks old
      WHERE old.tick_at > ${believable}
        OR old.fired_at < now() - interval '1 day' AND EXISTS (
             SELECT 1 FROM jobs.cron_ticks newer
             WHERE newer.name = old.name AND newer.tick_at > old.tick_at AND newer.tick_at <= ${believable})
        OR old.fired_at < now() - interval '7 days' AND old.name <> ALL (${cron.map(({ name }) => name)}::text[])
      LIMIT ${limit}) AS over
    WHERE t.name = over.name AND t.tick_at = over.tick_at
    RETURNING 1`);
  return rows.length;
}

/** Whatever name somebody has paused once has a row. Without one the defaults hold, so nothing is lost with it. */
async function removeQueues(db: Queryable): Promise<number> {
  const { maxRetries, timeoutMs, backoff, maxDeferrals, keepCompleted } = defaultSettings;
  const rows = await db.query(sql`
    DELETE FROM jobs.queues q
    WHERE NOT q.is_configured AND NOT q.paused AND q.throttle IS NULL AND q.updated_at < now() - interval '1 day'
      AND q.max_running IS NULL AND q.rate_count IS NULL
      AND q.max_retries = ${maxRetries} AND q.timeout_ms = ${timeoutMs}
      AND q.backoff_initial_ms = ${backoff.initialMs} AND q.backoff_max_ms = ${backoff.maxMs}
      AND q.backoff_jitter = ${backoff.jitter}
      AND q.max_deferrals = ${maxDeferrals} AND q.keep_completed = ${keepCompleted}
    RETURNING 1`);
  return rows.length;
}

/** Workers that said once that they wait, and are no more. */
async function removeIdleWorkers(db: Queryable): Promise<void> {
  await db.query(sql`DELETE FROM platform.idle_workers WHERE idle_until < now() - interval '1 day'`);
}
