import { fingerprintOfText } from '../../kernel/fingerprint/text-fingerprint.ts';
import type { Service } from '../../kernel/service.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { unnestRows } from '../../platform/postgres/unnest-rows.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { createReaper, type ReaperOptions } from '../../platform/work/reaper.ts';
import { hasRow, leaseIsOver, reap, settle } from '../../platform/work/work.ts';
import type { QueueSettings } from '../domain/queue-settings.ts';
import {
  backoffOf,
  jobs,
  notifyDead,
  pulledOwnerPrefix,
  recordFailures,
  type WorkDeps,
} from '../jobs-table.ts';
import { notifyOfRoom } from '../settle-jobs.ts';

/** A job whose lease expired, after the reaper has ended the attempt. */
export type ReapedJob = Readonly<{
  jobId: string;
  queue: string;
  status: 'failed' | 'dead_letter';
  error: string;
  retryCount: number;
}>;

export type ReaperDeps = WorkDeps & Readonly<{ onReaped: (job: ReapedJob) => void }>;

/** Longer than the delay between two tries of a settle. */
const graceMs = 3000;

export function createJobsReaper(
  deps: ReaperDeps,
  options: Pick<ReaperOptions, 'shortestLeaseMs' | 'onReaped' | 'onError'>,
): Service {
  return createReaper({
    slice: 'jobs',
    worker: deps.worker,
    clock: deps.worker.clock,
    hasLeased: () => hasRow(deps.db, jobs, sql`t.status = 'running'`),
    reap: () => reapJobs(deps),
    afterOutage: { graceMs, ping: () => deps.db.query(sql`SELECT 1`) },
    ...options,
  });
}

/** Ends attempts whose lease has expired, of all queues; returns how many. */
export async function reapJobs(deps: ReaperDeps): Promise<number> {
  const { db, queues, onReaped } = deps;
  const running = await db.query<{ queue: string }>(sql`
    SELECT DISTINCT queue FROM jobs.job_queue WHERE status = 'running'`);
  let count = 0;
  for (const { queue } of running) {
    const reaped = await reapQueue(db, queue, queues.settingsOf(queue));
    for (const job of reaped) onReaped(job);
    if (reaped.length > 0) await notifyOfRoom(deps, queue);
    count += reaped.length;
  }
  return count;
}

type ReapedRow = Readonly<{
  job_id: string;
  queue: string;
  status: ReapedJob['status'];
  error_message: string;
  retry_count: number;
}>;

const batchSize = 500;

async function reapQueue(
  db: Database,
  queue: string,
  settings: QueueSettings,
): Promise<readonly ReapedJob[]> {
  const timedOut = await settleTimedOut(db, queue, settings);
  const lost = await reap<ReapedRow>(db, jobs, {
    where: sql`t.queue = ${queue} AND t.status = 'running' AND NOT ${hasTimedOut(settings)}`,
    limit: batchSize,
    set: failedWith('the worker was lost while it ran the job', settings),
    returning: reapedColumns(sql`NULL::text`),
    also: sql`${recordFailures(sql`reaped`)}${notifyDead(sql`reaped`)}`,
  });
  return [...timedOut, ...lost].map((row) => ({
    jobId: row.job_id,
    queue: row.queue,
    status: row.status,
    error: row.error_message,
    retryCount: row.retry_count,
  }));
}

/** What a failed attempt changes in the row `t`. */
function failedWith(error: string, { backoff }: QueueSettings): Sql {
  const isDead = sql`t.retry_count + 1 >= t.max_retries`;
  const dueAt = sql`now() + ${backoffOf(sql`t.retry_count + 1`, backoff)} * interval '1 millisecond'`;
  return sql`
      status = CASE WHEN ${isDead} THEN 'dead_letter' ELSE 'failed' END,
      retry_count = t.retry_count + 1,
      error_message = ${error}, fingerprint = ${fingerprintOfText(error)},
      run_at = ${dueAt}, sort_at = ${dueAt},
      completed_at = CASE WHEN ${isDead} THEN clock_timestamp() END`;
}

function reapedColumns(worker: Sql): Sql {
  return sql`
      t.job_id, t.queue, t.status, t.retry_count, t.error_message, ${worker} AS worker, t.lease_epoch, t.started_at,
      NULL::text AS error_class, NULL::text AS stack, t.fingerprint, true AS has_failed`;
}

/**
 * A pulled job whose lease reached its timeout. Our own workers settle such a job themselves; for a worker outside of
 * this process the lease tells, and the worker may well be alive.
 */
function hasTimedOut({ timeoutMs }: QueueSettings): Sql {
  return sql`(starts_with(t.lease_owner, ${pulledOwnerPrefix})
    AND t.lease_until >= t.started_at + ${timeoutMs} * interval '1 millisecond') IS TRUE`;
}

type TimedOutJob = Readonly<{ job_id: string; lease_epoch: bigint; lease_owner: string }>;

/** A timeout is an ordinary failure: unlike a lost lease it does not set `lease_lost`. */
async function settleTimedOut(
  db: Queryable,
  queue: string,
  settings: QueueSettings,
): Promise<readonly ReapedRow[]> {
  const found = await db.query<TimedOutJob>(sql`
    SELECT t.job_id, t.lease_epoch, t.lease_owner FROM jobs.job_queue t
    WHERE t.queue = ${queue} AND t.status = 'running' AND ${leaseIsOver} AND ${hasTimedOut(settings)}
    LIMIT ${batchSize}`);
  if (found.length === 0) return [];
  const leased = unnestRows<TimedOutJob>(sql`leased`, found, [
    [sql`key`, sql`uuid[]`, (row) => row.job_id],
    [sql`epoch`, sql`bigint[]`, (row) => row.lease_epoch],
    [sql`worker`, sql`text[]`, (row) => row.lease_owner],
  ]);
  const statement = sql`
    WITH settled AS (
      UPDATE jobs.job_queue t
      SET ${failedWith(`timed out after ${settings.timeoutMs} ms`, settings)},
          lease_owner = NULL, lease_until = NULL, lease_lost = false,
          lease_epoch = nextval('platform.lease_epochs')
      FROM ${leased}
      WHERE t.job_id = leased.key AND t.lease_epoch = leased.epoch AND (t.status = 'running') IS TRUE
      RETURNING ${reapedColumns(sql`leased.worker`)}
    )${recordFailures(sql`settled`)}${notifyDead(sql`settled`)}
    SELECT * FROM settled`;
  return settle<ReapedRow>(db, { slice: jobs.slice, count: found.length }, statement);
}
