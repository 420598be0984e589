import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { Status } from '../domain/job.ts';
import { jobNotFound } from '../route-parts.ts';
import { jobColumns, jobOf, shownBytes, wholeTexts, type Job, type JobRow } from './job-row.ts';

/** An attempt that ended in failure. */
export type FailedAttempt = Readonly<{
  retryCount: number;
  statusTo: Status;
  error: string;
  /** Class of the thrown error; null if unknown. */
  errorClass: string | null;
  /** Truncated, and only of the newest attempts. */
  stack: string | null;
  /** Null if no worker reported the failure. */
  fingerprint: string | null;
  worker: string | null;
  epoch: bigint;
  startedAt: Date | null;
  endedAt: Date;
}>;

/** What a person did to a job. */
export type JobAction = Readonly<{
  action: string;
  statusFrom: Status;
  statusTo: Status;
  actor: string;
  reason: string | null;
  at: Date;
}>;

/** A job with its failed attempts and actions, oldest first. */
export type JobDetails = Readonly<{
  job: Job;
  attempts: readonly FailedAttempt[];
  actions: readonly JobAction[];
}>;

/** A job that is requeued again and again has a long history; only the newest part is read. */
const historyLimit = 1000;
const stackLimit = 20;

export async function findJob(db: Queryable, jobId: string): Promise<JobDetails> {
  const [row] = await db.query<JobRow>(sql`
    SELECT ${jobColumns}, ${wholeTexts} FROM jobs.job_queue t WHERE t.job_id = ${jobId}`);
  if (row === undefined) throw jobNotFound(jobId);
  const attempts = await selectAttempts(db, jobId);
  const actions = await selectActions(db, jobId);
  return { job: jobOf(row), attempts: attempts.toReversed(), actions: actions.toReversed() };
}

/** Bytes of the job in a response; 0 if there is no such job. */
export async function jobBytes(db: Queryable, jobId: string): Promise<number> {
  const [row] = await db.query<{ bytes: bigint }>(sql`
    SELECT ${shownBytes} AS bytes FROM jobs.job_queue t WHERE t.job_id = ${jobId}`);
  return Number(row?.bytes ?? 0n);
}

async function selectAttempts(db: Queryable, jobId: string): Promise<readonly FailedAttempt[]> {
  return db.query<FailedAttempt>(sql`
    SELECT retry_count AS "retryCount", status_to AS "statusTo", error, error_class AS "errorClass",
           CASE WHEN row_number() OVER (ORDER BY id DESC) <= ${stackLimit} THEN stack END AS stack, fingerprint,
           worker, lease_epoch AS epoch, started_at AS "startedAt", ended_at AS "endedAt"
    FROM jobs.job_attempts WHERE job_id = ${jobId} ORDER BY id DESC LIMIT ${historyLimit}`);
}

async function selectActions(db: Queryable, jobId: string): Promise<readonly JobAction[]> {
  return db.query<JobAction>(sql`
    SELECT action, status_from AS "statusFrom", status_to AS "statusTo", actor, reason, at
    FROM jobs.job_actions WHERE job_id = ${jobId} ORDER BY id DESC LIMIT ${historyLimit}`);
}
