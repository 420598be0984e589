import type { Service } from '../../kernel/service.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { unnestRows } from '../../platform/postgres/unnest-rows.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import type { Logger } from '../../platform/telemetry/logger.ts';
import { batchTask, type Batch, type RetentionTask } from '../../platform/work/retention-tasks.ts';
import { createRetention, every } from '../../platform/work/retention.ts';
import type { Worker } from '../../platform/work/work.ts';
import { defaultSettings } from '../domain/queue-settings.ts';

export type JobRetentionOptions = Readonly<{
  /** How long completed jobs and dead letters stay, of queues without settings of their own. */
  retentionMs: number;
  deadRetentionMs: number;
  queues: readonly Readonly<{ name: string; retentionMs: number; deadRetentionMs: number }>[];
  batchSize?: number;
}>;

/** `more` are the tasks of other flows: fired times of schedules. */
export function createJobRetention(
  worker: Worker,
  log: Logger,
  options: JobRetentionOptions,
  more: readonly RetentionTask[],
): Service {
  return createRetention(worker, {
    name: 'jobs.retention',
    rounds: [
      {
        schedule: every(600_000),
        tasks: [...jobRetention(worker.db, options), ...more],
        pausePerRound: 10,
        done: 'deleted expired jobs',
        onDone({ unresolved: count = 0 }) {
          if (count > 0) log.warn({ count }, 'deleted expired dead letters that nobody had resolved');
        },
      },
    ],
    log,
  });
}

export function jobRetention(db: Queryable, options: JobRetentionOptions): readonly RetentionTask[] {
  const limit = options.batchSize ?? 1000;
  const deleteJobs = (range: Sql) =>
    batchTask<string>('expired jobs', async (after) => {
      const { expired, next } = await findExpired(db, options, { range, after: after ?? firstId, limit });
      return { counts: await deleteExpired(db, expired), next };
    });
  const deleteOrphans = (name: string, table: Sql) =>
    batchTask<string>(name, (after) => deleteOrphanBatch(db, table, { after: after ?? firstId, limit }));
  return [
    deleteJobs(madeBefore(options)),
    deleteJobs(madeElsewhere),
    deleteOrphans('attempts of deleted jobs', sql`jobs.job_attempts`),
    deleteOrphans('actions of deleted jobs', sql`jobs.job_actions`),
    { name: 'queues with default settings', run: () => deleteDefaultQueues(db) },
  ];
}

type BatchRange = Readonly<{ after: string; limit: number }>;

const firstId = '00000000-0000-0000-0000-000000000000';

type SeenRow = Readonly<{ job_id: string; keep_ms: number; is_expired: boolean }>;

/**
 * Reads the primary key from its start. Ids begin with their creation time, and a job that ended before a time was
 * created before it: so no index on the end is needed, which every settle would have to maintain. Rows that stay are
 * read once per round.
 */
function madeBefore({ retentionMs, deadRetentionMs, queues }: JobRetentionOptions): Sql {
  const keepsMs = [{ retentionMs, deadRetentionMs }, ...queues].flatMap((each) => [
    each.retentionMs,
    each.deadRetentionMs,
  ]);
  return sql`j.job_id < ${idAt(Math.min(...keepsMs))}`;
}

async function findExpired(
  db: Queryable,
  { retentionMs, deadRetentionMs, queues }: JobRetentionOptions,
  { range, after, limit }: BatchRange & Readonly<{ range: Sql }>,
): Promise<Readonly<{ expired: readonly SeenRow[]; next: string | null }>> {
  const configured = unnestRows<JobRetentionOptions['queues'][number]>(sql`configured`, queues, [
    [sql`queue`, sql`text[]`, ({ name }) => name],
    [sql`retention_ms`, sql`float8[]`, (queue) => queue.retentionMs],
    [sql`dead_retention_ms`, sql`float8[]`, (queue) => queue.deadRetentionMs],
  ]);
  const seen = await db.query<SeenRow>(sql`
    SELECT j.job_id, keep.ms AS keep_ms,
           j.status IN ('completed', 'dead_letter') AND ${endedBefore(sql`keep.ms`)} AS is_expired
    FROM jobs.job_queue j
    LEFT JOIN ${configured} ON configured.queue = j.queue
    CROSS JOIN LATERAL (
      SELECT CASE j.status WHEN 'completed' THEN COALESCE(configured.retention_ms, ${retentionMs}::float8)
                           ELSE COALESCE(configured.dead_retention_ms, ${deadRetentionMs}::float8) END AS ms) AS keep
    WHERE j.job_id > ${after} AND ${range}
    ORDER BY j.job_id
    LIMIT ${limit}`);
  return {
    expired: seen.filter((row) => row.is_expired),
    next: seen.length < limit ? null : (seen.at(-1)?.job_id ?? null),
  };
}

/** `completed_at` may be missing where somebody ended the job with SQL. */
function endedBefore(ms: Sql): Sql {
  return sql`COALESCE(j.completed_at, j.created_at) < now() - ${ms} * interval '1 millisecond'`;
}

/** The smallest id of jobs created this long ago. */
function idAt(agoMs: number): Sql {
  return sql`(
    SELECT (lpad(to_hex(GREATEST(0, date_part('epoch', now()) * 1000 - ${agoMs}::float8)::bigint), 12, '0')
            || repeat('0', 20))::uuid)`;
}

/** Ids that a caller chose may contain any time. Those with a future one are few, and read as well. */
const madeElsewhere: Sql = sql`j.job_id > ${idAt(-86_400_000)}`;

type DeletedRow = Readonly<{ status: string; resolution: string | null }>;

/** A job that was requeued since it was found stays, with its history. */
async function deleteExpired(db: Queryable, expired: readonly SeenRow[]) {
  const counts = { completed: 0, resolved: 0, unresolved: 0 };
  if (expired.length === 0) return counts;
  const found = unnestRows<SeenRow>(sql`expired`, expired, [
    [sql`job_id`, sql`uuid[]`, (row) => row.job_id],
    [sql`keep_ms`, sql`float8[]`, (row) => row.keep_ms],
  ]);
  const deleted = await db.query<DeletedRow>(sql`
    WITH deleted AS (
      DELETE FROM jobs.job_queue j USING ${found}
      WHERE j.job_id = expired.job_id AND j.status IN ('completed', 'dead_letter')
        AND ${endedBefore(sql`expired.keep_ms`)}
      RETURNING j.job_id, j.status, j.resolution
    ), attempts AS (
      DELETE FROM jobs.job_attempts WHERE job_id = ANY(ARRAY(SELECT job_id FROM deleted))
    ), actions AS (
      DELETE FROM jobs.job_actions WHERE job_id = ANY(ARRAY(SELECT job_id FROM deleted))
    )
    SELECT status, resolution FROM deleted`);
  for (const { status, resolution } of deleted)
    counts[status === 'completed' ? 'completed' : resolution === null ? 'unresolved' : 'resolved'] += 1;
  return counts;
}

/** The history of jobs that were deleted on completion, or by somebody with SQL. */
async function deleteOrphanBatch(
  db: Queryable,
  table: Sql,
  { after, limit }: BatchRange,
): Promise<Batch<string>> {
  // By a subquery per id: an anti-join may be planned as a scan of all jobs.
  const [row] = await db.query<{ seen: number; deleted: number; last: string | null }>(sql`
    WITH seen AS MATERIALIZED (
      SELECT job_id FROM ${table} WHERE job_id > ${after} ORDER BY job_id LIMIT ${limit}
    ), ids AS (
      SELECT DISTINCT job_id FROM seen
    ), orphans AS MATERIALIZED (
      SELECT ids.job_id FROM ids
      WHERE (SELECT true FROM jobs.job_queue j WHERE j.job_id = ids.job_id) IS NULL
    ), deleted AS (
      DELETE FROM ${table} WHERE job_id = ANY(ARRAY(SELECT job_id FROM orphans)) RETURNING 1
    )
    SELECT (SELECT count(*)::int FROM seen) AS seen, (SELECT count(*)::int FROM deleted) AS deleted,
           (SELECT job_id FROM seen ORDER BY job_id DESC LIMIT 1) AS last`);
  const isLast = row === undefined || row.seen < limit;
  return { counts: { orphans: row?.deleted ?? 0 }, next: isLast ? null : row.last };
}

/** Every queue that was ever paused has a row. Without a row the defaults apply, so one with the defaults may go. */
async function deleteDefaultQueues(db: Queryable) {
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
  return { queues: rows.length };
}
