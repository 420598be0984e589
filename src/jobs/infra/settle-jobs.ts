import { cleanText } from '../../kernel/text.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { rowsOf, type Column } from '../../platform/postgres/rows-of.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { settle, type Worker } from '../../platform/postgres/work.ts';
import type { Status } from '../domain/job.ts';
import type { QueueSettings } from '../domain/queue-settings.ts';
import type { JobEnd, SettledJob } from '../usecase/ports.ts';
import { backoffOf, jobs, noteFailures, tellOfDead } from './jobs-table.ts';

export type SettleDeps = Readonly<{
  db: Database;
  worker: Worker;
  settings: QueueSettings;
  /** It was tried before, and the answer was lost: then a row that is gone may have gone with our own end. */
  wasTried: (jobId: string) => boolean;
}>;

type SettledRow = Readonly<{ job_id: string; status: Status }>;
type Completed = Extract<JobEnd, { end: 'completed' }>;
type Uncompleted = Exclude<JobEnd, Completed>;

/**
 * Ends attempts, of however many claims: one statement for what is completed, one for the rest. Safe to repeat after
 * a lost answer: a row that already shows the end of its claim is settled, and a completed job whose row went with
 * its end was completed by us. Every other row that does not match was taken from us: a stale write, dropped and
 * counted.
 */
export async function settleJobs(deps: SettleDeps, ends: readonly JobEnd[]): Promise<readonly SettledJob[]> {
  const completed = ends.filter((end) => end.end === 'completed');
  const others = ends.filter((end) => end.end !== 'completed');
  const statuses = new Map<string, Status | null>();
  const note = (rows: readonly SettledRow[]): void => {
    for (const row of rows) statuses.set(row.job_id, row.status);
  };
  if (completed.length > 0)
    for (const jobId of await settleCompleted(deps, completed)) statuses.set(jobId, 'completed');
  if (others.length > 0) note(await settleOthers(deps, others));
  const unmatched = ends.filter(({ job }) => !statuses.has(job.jobId));
  if (unmatched.length > 0) await explain(deps, unmatched, statuses);
  return ends.map(({ job }) => ({ jobId: job.jobId, status: statuses.get(job.jobId) ?? null }));
}

const tokenColumns: readonly Column<JobEnd>[] = [
  [sql`key`, sql`uuid[]`, ({ job }) => job.jobId],
  [sql`epoch`, sql`bigint[]`, ({ job }) => job.lease.epoch],
];

const heldColumns: readonly Column<JobEnd>[] = [
  ...tokenColumns,
  [sql`started_at`, sql`timestamptz[]`, ({ startedAt }) => startedAt],
];

const completedColumns: readonly Column<Completed>[] = [
  ...heldColumns,
  [sql`result`, sql`jsonb[]`, ({ result }) => result],
];

/** Which of them were ours to settle. As a rule all were, and then the database sends their number only. */
async function settleCompleted(
  { db, settings }: SettleDeps,
  ends: readonly Completed[],
): Promise<readonly string[]> {
  const isDeleted = !settings.keepCompleted;
  const [settled] = await settle<{ some: readonly string[] | null }>(db, jobs, {
    held: rowsOf<Completed>(sql`held`, ends, isDeleted ? tokenColumns : completedColumns),
    count: ends.length,
    guard: sql`t.status = 'running'`,
    set: isDeleted
      ? 'delete'
      : sql`
      status = 'completed', completed_at = clock_timestamp(), result = held.result, error_message = NULL,
      started_at = COALESCE(held.started_at, t.started_at)`,
    returning: sql`t.job_id`,
    select: sql`CASE WHEN count(*) < ${ends.length} THEN COALESCE(json_agg(job_id), '[]') END AS some`,
  });
  return settled?.some ?? ends.map(({ job }) => job.jobId);
}

const otherColumns: readonly Column<Uncompleted>[] = [
  ...heldColumns,
  [sql`is_failure`, sql`boolean[]`, ({ end }) => end === 'failed'],
  [sql`is_retryable`, sql`boolean[]`, (end) => end.end !== 'failed' || end.isRetryable],
  [sql`is_unstarted`, sql`boolean[]`, ({ end }) => end === 'unstarted'],
  [sql`text`, sql`text[]`, textOf],
  [sql`is_busy`, sql`boolean[]`, (end) => end.end === 'deferred' && end.isBusy === true],
  [sql`wait_ms`, sql`float8[]`, waitOf],
];

const maxText = 4000;

function textOf(end: Uncompleted): string {
  switch (end.end) {
    case 'failed':
      return cleanText(end.error, maxText);
    case 'deferred':
      return cleanText(end.reason, maxText);
    case 'unstarted':
      return '';
  }
}

function waitOf(end: Uncompleted): number {
  switch (end.end) {
    case 'failed':
      return end.retryAfterMs ?? 0;
    case 'deferred':
      return end.delayMs;
    case 'unstarted':
      return 0;
  }
}

/**
 * A deferral beyond the bound is a failure, so nothing goes round for ever. What was never begun goes back to where it
 * stood; what may go on at once is placed by its priority, as when it was new.
 */
async function settleOthers(
  { db, worker, settings }: SettleDeps,
  ends: readonly Uncompleted[],
): Promise<readonly SettledRow[]> {
  const isOverBound = sql`(NOT held.is_unstarted AND t.deferrals >= ${settings.maxDeferrals})`;
  const hasFailed = sql`(held.is_failure OR ${isOverBound})`;
  const isDead = sql`(${hasFailed} AND (NOT held.is_retryable OR t.retry_count + 1 >= t.max_retries))`;
  const backoff = backoffOf(
    sql`CASE WHEN ${hasFailed} THEN t.retry_count ELSE t.deferrals END + 1`,
    settings.backoff,
  );
  const waitMs = sql`
    CASE WHEN ${hasFailed} OR held.is_busy THEN GREATEST(${backoff}, held.wait_ms) ELSE held.wait_ms END`;
  const dueAt: Sql = sql`now() + ${waitMs} * interval '1 millisecond'`;
  const ahead: Sql = sql`CASE WHEN ${waitMs} > 0 THEN 0 ELSE t.priority END * interval '1 minute'`;
  return settle<SettledRow>(db, jobs, {
    held: rowsOf(sql`held`, ends, otherColumns),
    count: ends.length,
    guard: sql`t.status = 'running'`,
    set: sql`
      status = CASE WHEN ${isDead} THEN 'dead_letter'
                    WHEN ${hasFailed} OR t.retry_count > 0 THEN 'failed' ELSE 'pending' END,
      retry_count = t.retry_count + CASE WHEN ${hasFailed} THEN 1 ELSE 0 END,
      deferrals = CASE WHEN held.is_failure OR held.is_unstarted THEN t.deferrals
                       ELSE LEAST(t.deferrals, ${settings.maxDeferrals}) + 1 END,
      error_message = CASE WHEN ${hasFailed} THEN held.text ELSE t.error_message END,
      run_at = CASE WHEN held.is_unstarted THEN t.run_at ELSE ${dueAt} END,
      sort_at = CASE WHEN held.is_unstarted THEN t.sort_at ELSE ${dueAt} - ${ahead} END,
      completed_at = CASE WHEN ${isDead} THEN clock_timestamp() END,
      started_at = COALESCE(held.started_at, t.started_at)`,
    keepsLeaseLost: sql`held.is_unstarted`,
    returning: sql`
      t.job_id, t.queue, t.status, t.retry_count, t.error_message, ${worker.owner}::text AS worker, t.lease_epoch,
      t.started_at,
      held.is_failure OR (NOT held.is_unstarted AND t.deferrals > ${settings.maxDeferrals}) AS has_failed`,
    also: sql`${noteFailures(sql`settled`)}${tellOfDead(sql`settled`)}`,
  });
}

/** Why rows did not match: settled by us before, or taken from us. */
async function explain(
  { db, worker, settings, wasTried }: SettleDeps,
  unmatched: readonly JobEnd[],
  statuses: Map<string, Status | null>,
): Promise<void> {
  const rows = await db.query<SettledRow & { is_ours: boolean }>(sql`
    SELECT t.job_id, t.status, t.lease_epoch = held.epoch AND t.status <> 'running' AS is_ours
    FROM ${rowsOf(sql`held`, unmatched, heldColumns)}
    JOIN jobs.job_queue t ON t.job_id = held.key`);
  const found = new Map(rows.map((row) => [row.job_id, row]));
  let stale = 0;
  for (const { job, end } of unmatched) {
    const row = found.get(job.jobId);
    const isGone = row === undefined && end === 'completed' && !settings.keepCompleted;
    const wasDeleted = isGone && wasTried(job.jobId);
    if (row?.is_ours === true) statuses.set(job.jobId, row.status);
    else if (wasDeleted) statuses.set(job.jobId, 'completed');
    else stale += 1;
  }
  if (stale > 0) worker.onStale(jobs.slice, stale);
}
