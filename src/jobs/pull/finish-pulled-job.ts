import { AppError } from '../../kernel/errors.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { Status } from '../domain/job.ts';
import { defaultSettings } from '../domain/queue-settings.ts';
import { jobs as jobsTable } from '../jobs-table.ts';
import { settleJobs, type ErrorOrigin, type Settlement } from '../settle-jobs.ts';
import type { PullDeps } from './claim-pulled.ts';

/**
 * A worker outside of this process reports on a job that it has claimed. The epoch proves that it still has the lease:
 * a job that was reaped, cancelled or claimed again has another epoch, and the report is rejected as stale.
 */
export type Claim = Readonly<{ jobId: string; epoch: bigint }>;

export type PulledOutcome =
  | Readonly<{ outcome: 'completed'; result: string | null }>
  | Readonly<{
      outcome: 'failed';
      error: string;
      origin?: ErrorOrigin;
      isRetryable: boolean;
      retryAfterMs: number | null;
    }>
  | Readonly<{ outcome: 'released' }>;

export type Heartbeat = Claim &
  Readonly<{
    leaseMs: number;
    /** JSON text; null keeps the last one. */
    progress: string | null;
  }>;

/** A client may repeat its request, so a settle does not wait longer for the database. */
const settleWithinMs = 5000;

/**
 * A report that is repeated because the response was lost gets the same response and changes nothing. If completed
 * jobs are deleted, nothing is left of the first report, and the second one is stale.
 */
export async function finishPulledJob(deps: PullDeps, claim: Claim, report: PulledOutcome): Promise<Status> {
  const job = await findReported(deps.db, claim.jobId);
  if (job === null) throw missing(deps, claim.jobId);
  const isLeased = job.epoch === claim.epoch;
  if (isLeased && isResultOf(report, job.status)) return job.status;
  const settlement = settlementOf(job, report);
  const isRunning = isLeased && job.status === 'running';
  const status = isRunning ? await settleOne(deps, job, settlement) : job.status;
  if (isRunning && status !== null && isResultOf(report, status)) {
    deps.counts.settled(job.queue, settlement, status);
    return status;
  }
  // If it is null, the settle has counted the stale write.
  if (status !== null) deps.worker.onStale(jobsTable.slice, 1);
  deps.counts.settled(job.queue, { ...settlement, ran: null }, null);
  throw stale(job.jobId, `status=${status ?? 'changed a moment ago'}`);
}

/** Renews the lease and stores the progress. */
export async function renewPulledJob(deps: PullDeps, heartbeat: Heartbeat): Promise<Renewed> {
  const renewed = await renewLease(deps.db, heartbeat);
  if (renewed !== null) return renewed;
  const job = await findReported(deps.db, heartbeat.jobId);
  if (job === null) throw missing(deps, heartbeat.jobId);
  if (job.epoch === heartbeat.epoch && job.status === 'running')
    throw stale(job.jobId, `it timed out; it was claimed at ${job.startedAt?.toISOString()}`);
  deps.worker.onStale(jobsTable.slice, 1);
  throw stale(job.jobId, `status=${job.status}`);
}

type Renewed = Readonly<{ status: Status; leaseUntil: Date }>;

/** Never beyond the job's timeout. Null if the epoch is stale or the job has timed out. */
async function renewLease(
  db: Queryable,
  { jobId, epoch, leaseMs, progress }: Heartbeat,
): Promise<Renewed | null> {
  const timesOutAt = sql`(t.started_at + interval '1 millisecond' * COALESCE(
    (SELECT q.timeout_ms FROM jobs.queues q WHERE q.queue = t.queue), ${defaultSettings.timeoutMs}))`;
  const [row] = await db.query<{ status: Status; lease_until: Date }>(sql`
    UPDATE jobs.job_queue t
    SET lease_until = GREATEST(t.lease_until, LEAST(
          clock_timestamp() + ${leaseMs} * interval '1 millisecond', ${timesOutAt})),
        progress = COALESCE(${progress}::jsonb, t.progress)
    WHERE t.job_id = ${jobId} AND t.lease_epoch = ${epoch} AND t.status = 'running'
      AND clock_timestamp() < ${timesOutAt}
    RETURNING t.status, t.lease_until`);
  return row === undefined ? null : { status: row.status, leaseUntil: row.lease_until };
}

type ReportedJob = Readonly<{
  jobId: string;
  queue: string;
  status: Status;
  epoch: bigint;
  owner: string | null;
  startedAt: Date | null;
  /** Since then; null if it was not started. */
  ranMs: number | null;
  retryCount: number;
}>;

async function findReported(db: Queryable, jobId: string): Promise<ReportedJob | null> {
  const [job] = await db.query<ReportedJob>(sql`
    SELECT job_id AS "jobId", queue, status, lease_epoch AS epoch, lease_owner AS owner, started_at AS "startedAt",
           (EXTRACT(EPOCH FROM clock_timestamp() - started_at) * 1000)::float8 AS "ranMs",
           retry_count AS "retryCount"
    FROM jobs.job_queue WHERE job_id = ${jobId}`);
  return job ?? null;
}

async function settleOne(
  deps: PullDeps,
  { queue, owner }: ReportedJob,
  settlement: Settlement,
): Promise<Status | null> {
  const as = owner === null ? deps : { ...deps, worker: { ...deps.worker, owner } };
  const [settled] = await settleJobs(as, queue, [settlement], AbortSignal.timeout(settleWithinMs));
  return settled?.status ?? null;
}

type PulledSettlement = Settlement & Readonly<{ job: Readonly<{ retryCount: number }> }>;

function leasedJob({ jobId, epoch, owner, retryCount }: ReportedJob): PulledSettlement['job'] {
  return { jobId, retryCount, lease: { owner: owner ?? '', epoch, endsAtMs: 0 } };
}

function settlementOf(reported: ReportedJob, report: PulledOutcome): PulledSettlement {
  const job = leasedJob(reported);
  // A pulled job starts when it is claimed.
  const ran = reported.ranMs === null ? null : { waitedMs: 0, ms: reported.ranMs };
  return report.outcome === 'released'
    ? { job, ran, outcome: 'deferred', delayMs: 0, reason: 'released by its worker too often' }
    : { job, ran, ...report };
}

/** Whether the report may have led to this status. A job that is released too often has failed. */
function isResultOf({ outcome }: PulledOutcome, status: Status): boolean {
  switch (outcome) {
    case 'completed':
      return status === 'completed';
    case 'failed':
      return status === 'failed' || status === 'dead_letter';
    case 'released':
      return status === 'pending' || status === 'failed' || status === 'dead_letter';
  }
}

/** Does not reveal the current epoch: it belongs to another worker. */
function stale(jobId: string, why: string): AppError {
  const message = `job ${jobId} is no longer leased with this epoch: ${why}`;
  return new AppError('SYS_JOBS_STALE', 'conflict', message);
}

/** Deleted while it ran, or completed and deleted, or never there: the caller does not have its lease. */
function missing({ worker }: PullDeps, jobId: string): AppError {
  worker.onStale(jobsTable.slice, 1);
  return stale(jobId, 'there is no such job');
}
