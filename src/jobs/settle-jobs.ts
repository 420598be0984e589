import { fingerprintOf } from '../kernel/fingerprint/fingerprint.ts';
import { fingerprintOfText } from '../kernel/fingerprint/text-fingerprint.ts';
import { cleanText } from '../kernel/text.ts';
import type { Queryable } from '../platform/postgres/database.ts';
import { unnestRows, type Column } from '../platform/postgres/unnest-rows.ts';
import { sql } from '../platform/postgres/sql.ts';
import { storeBatch } from '../platform/work/store-batch.ts';
import { notify } from '../platform/work/wake.ts';
import { settle } from '../platform/work/work.ts';
import { jobsChannel } from './channels.ts';
import type { ClaimedJob } from './claim-jobs.ts';
import type { Status } from './domain/job.ts';
import type { QueueSettings } from './domain/queue-settings.ts';
import { backoffOf, jobs, notifyDead, recordFailures, type WorkDeps } from './jobs-table.ts';

/**
 * How long after its claim a job's handler was started, and how long it ran. Durations of the worker's clock: only the
 * database's clock says when something happened.
 */
export type Ran = Readonly<{ waitedMs: number; ms: number }>;

/** The class and the stack of the error, if known. */
export type ErrorOrigin = Readonly<{ className: string | null; stack: string | null }>;

/**
 * The outcome of a claimed job. `ran` is null if it was not started. A deferral says nothing about the job: the handler
 * snoozed it, or could not run it now. `isBusy`: it waits for its backoff at least. `isOutage`: the target is down; the
 * deferral is not counted. `unstarted`: the job goes back to its place in the queue.
 */
export type Settlement = Readonly<{ job: Pick<ClaimedJob, 'jobId' | 'lease'>; ran: Ran | null }> &
  (
    | Readonly<{ outcome: 'completed'; result: string | null }>
    | Readonly<{
        outcome: 'failed';
        error: string;
        origin?: ErrorOrigin;
        isRetryable: boolean;
        retryAfterMs: number | null;
      }>
    | Readonly<{ outcome: 'deferred'; delayMs: number; reason: string; isBusy?: boolean; isOutage?: boolean }>
    | Readonly<{ outcome: 'unstarted' }>
  );

/** The job's status after the settle; null if the write was stale. */
export type SettledJob = Readonly<{ jobId: string; status: Status | null }>;

/** Longer than most leases; what is not settled by then is reaped. */
const settleWithinMs = 60_000;

/**
 * Settles jobs of one queue, of any number of claims. While the database is unavailable it is retried until the signal
 * aborts. A job that could not be settled is missing from the result: its lease expires.
 */
export async function settleJobs(
  deps: WorkDeps,
  queue: string,
  settlements: readonly Settlement[],
  until = AbortSignal.timeout(settleWithinMs),
): Promise<readonly SettledJob[]> {
  const settled: SettledJob[] = [];
  const tried = new Set<string>();
  const store = async (batch: readonly Settlement[]): Promise<void> => {
    const triedBefore = new Set(tried);
    for (const { job } of batch) tried.add(job.jobId);
    settled.push(
      ...(await settleBatch(deps, batch, { settings: deps.queues.settingsOf(queue), triedBefore })),
    );
  };
  await storeBatch(
    settlements.toSorted((a, b) => (a.job.jobId < b.job.jobId ? -1 : 1)),
    {
      store,
      storeBad: (settlement) => store([withoutText(settlement)]),
      until,
      onRetry: deps.onSettleRetry,
      isolatesSlow: true,
    },
  ).catch((error: unknown) => {
    if (settled.length === 0) throw error;
    deps.onSettleRetry(error);
  });
  if (settlements.some(({ outcome }) => outcome === 'unstarted')) await notifyWaiting(deps, queue);
  else await notifyOfRoom(deps, queue);
  return settled;
}

/** Jobs that ended may have made room in a limited queue. A worker that misses the notification polls. */
export async function notifyOfRoom({ db, queues }: WorkDeps, queue: string): Promise<void> {
  if (queues.isLimited(queue)) await notifyWaiting({ db }, queue);
}

async function notifyWaiting({ db }: Pick<WorkDeps, 'db'>, queue: string): Promise<void> {
  await notify(db, jobsChannel(queue)).catch(() => {});
}

/** For a settlement whose text the database refuses. */
function withoutText(settlement: Settlement): Settlement {
  switch (settlement.outcome) {
    case 'completed':
      return { ...settlement, result: null };
    case 'failed': {
      const { origin: _, ...rest } = settlement;
      return { ...rest, error: 'the error text could not be stored' };
    }
    case 'deferred':
    case 'unstarted':
      return settlement;
  }
}

type Completed = Extract<Settlement, { outcome: 'completed' }>;
type Uncompleted = Exclude<Settlement, Completed>;
type SettledRow = Readonly<{ job_id: string; status: Status }>;
type Batch = Readonly<{ settings: QueueSettings; triedBefore: ReadonlySet<string> }>;

/**
 * One statement for completed jobs, one for the others. Safe to repeat after a lost response: a row that already shows
 * the end of this claim is settled, and a completed job whose row was deleted by an earlier try was completed by us.
 * Any other row that does not match was taken over: a stale write, dropped and counted.
 */
async function settleBatch(
  deps: WorkDeps,
  batch: readonly Settlement[],
  { settings, triedBefore }: Batch,
): Promise<readonly SettledJob[]> {
  const completed = batch.filter((one) => one.outcome === 'completed');
  const others = batch.filter((one) => one.outcome !== 'completed');
  const statuses = new Map<string, Status | null>();
  if (completed.length > 0)
    for (const jobId of await settleCompleted(deps.db, completed, settings)) statuses.set(jobId, 'completed');
  if (others.length > 0)
    for (const row of await settleOthers(deps, others, settings)) statuses.set(row.job_id, row.status);
  const unmatched = batch.filter(({ job }) => !statuses.has(job.jobId));
  if (unmatched.length > 0) await resolveUnmatched(deps, unmatched, { settings, triedBefore, statuses });
  return batch.map(({ job }) => ({ jobId: job.jobId, status: statuses.get(job.jobId) ?? null }));
}

const keyColumns: readonly Column<Settlement>[] = [
  [sql`key`, sql`uuid[]`, ({ job }) => job.jobId],
  [sql`epoch`, sql`bigint[]`, ({ job }) => job.lease.epoch],
];

const leasedColumns: readonly Column<Settlement>[] = [
  ...keyColumns,
  [sql`waited_ms`, sql`float8[]`, ({ ran }) => ran?.waitedMs ?? 0],
];

const completedColumns: readonly Column<Completed>[] = [
  ...leasedColumns,
  [sql`result`, sql`jsonb[]`, ({ result }) => result],
];

/** Returns the ids that matched. Usually all do, and then the database returns only that. */
async function settleCompleted(
  db: Queryable,
  batch: readonly Completed[],
  { keepCompleted }: QueueSettings,
): Promise<readonly string[]> {
  const change = keepCompleted
    ? sql`
      UPDATE jobs.job_queue t
      SET status = 'completed', completed_at = clock_timestamp(), result = leased.result, error_message = NULL,
          fingerprint = NULL, started_at = t.started_at + leased.waited_ms * interval '1 millisecond',
          lease_owner = NULL, lease_until = NULL, lease_lost = false
      FROM ${unnestRows(sql`leased`, batch, completedColumns)}`
    : sql`
      DELETE FROM jobs.job_queue t
      USING ${unnestRows(sql`leased`, batch, keyColumns)}`;
  const statement = sql`
    WITH settled AS (${change}
      WHERE t.job_id = leased.key AND t.lease_epoch = leased.epoch AND (t.status = 'running') IS TRUE
      RETURNING t.job_id
    )
    SELECT CASE WHEN count(*) < ${batch.length} THEN COALESCE(json_agg(job_id), '[]') END AS some FROM settled`;
  const about = { slice: jobs.slice, count: batch.length };
  const [row] = await settle<{ some: readonly string[] | null }>(db, about, statement);
  return row?.some ?? batch.map(({ job }) => job.jobId);
}

const otherColumns: readonly Column<Uncompleted>[] = [
  ...leasedColumns,
  [sql`is_failure`, sql`boolean[]`, ({ outcome }) => outcome === 'failed'],
  [sql`is_retryable`, sql`boolean[]`, (one) => one.outcome !== 'failed' || one.isRetryable],
  [sql`is_unstarted`, sql`boolean[]`, ({ outcome }) => outcome === 'unstarted'],
  [sql`text`, sql`text[]`, textOf],
  [sql`error_class`, sql`text[]`, (one) => cleanOrNull(originOf(one)?.className, maxClassName)],
  [sql`stack`, sql`text[]`, (one) => cleanOrNull(originOf(one)?.stack, maxStack)],
  [sql`fingerprint`, sql`text[]`, causeOf],
  [sql`is_busy`, sql`boolean[]`, (one) => one.outcome === 'deferred' && one.isBusy === true],
  [sql`is_free`, sql`boolean[]`, isFree],
  [sql`wait_ms`, sql`float8[]`, waitMsOf],
];

/**
 * A deferral beyond `maxDeferrals` is a failure, so that no job is deferred for ever; an outage is not counted. An
 * unstarted job keeps its place in the queue; a job that is due at once is placed by its priority, like a new one.
 */
async function settleOthers(
  { db, worker }: WorkDeps,
  batch: readonly Uncompleted[],
  { maxDeferrals, backoff }: QueueSettings,
): Promise<readonly SettledRow[]> {
  const hasFailed = sql`(leased.is_failure OR (NOT leased.is_free AND t.deferrals >= ${maxDeferrals}))`;
  const isDead = sql`(${hasFailed} AND (NOT leased.is_retryable OR t.retry_count + 1 >= t.max_retries))`;
  const backoffMs = backoffOf(
    sql`CASE WHEN ${hasFailed} THEN t.retry_count ELSE t.deferrals END + 1`,
    backoff,
  );
  const waitMs = sql`
    CASE WHEN ${hasFailed} OR leased.is_busy THEN GREATEST(${backoffMs}, leased.wait_ms) ELSE leased.wait_ms END`;
  const dueAt = sql`now() + ${waitMs} * interval '1 millisecond'`;
  const statement = sql`
    WITH settled AS (
      UPDATE jobs.job_queue t
      SET status = CASE WHEN ${isDead} THEN 'dead_letter'
                        WHEN ${hasFailed} OR t.retry_count > 0 THEN 'failed' ELSE 'pending' END,
          retry_count = t.retry_count + CASE WHEN ${hasFailed} THEN 1 ELSE 0 END,
          deferrals = CASE WHEN leased.is_failure OR leased.is_free THEN t.deferrals
                           ELSE LEAST(t.deferrals, ${maxDeferrals}) + 1 END,
          error_message = CASE WHEN ${hasFailed} THEN leased.text ELSE t.error_message END,
          fingerprint = CASE WHEN ${hasFailed} THEN leased.fingerprint ELSE t.fingerprint END,
          run_at = CASE WHEN leased.is_unstarted THEN t.run_at ELSE ${dueAt} END,
          sort_at = CASE WHEN leased.is_unstarted THEN t.sort_at
                         ELSE ${dueAt} - CASE WHEN ${waitMs} > 0 THEN 0 ELSE t.priority END * interval '1 minute' END,
          completed_at = CASE WHEN ${isDead} THEN clock_timestamp() END,
          started_at = t.started_at + leased.waited_ms * interval '1 millisecond',
          lease_owner = NULL, lease_until = NULL, lease_lost = t.lease_lost AND leased.is_unstarted
      FROM ${unnestRows(sql`leased`, batch, otherColumns)}
      WHERE t.job_id = leased.key AND t.lease_epoch = leased.epoch AND (t.status = 'running') IS TRUE
      RETURNING t.job_id, t.queue, t.status, t.retry_count, t.error_message, ${worker.owner}::text AS worker,
                t.lease_epoch, t.started_at, leased.error_class, leased.stack,
                t.fingerprint,
                leased.is_failure OR (NOT leased.is_free AND t.deferrals > ${maxDeferrals}) AS has_failed
    )${recordFailures(sql`settled`)}${notifyDead(sql`settled`)}
    SELECT job_id, status FROM settled`;
  return settle<SettledRow>(db, { slice: jobs.slice, count: batch.length }, statement);
}

/** Adds the status of rows that an earlier try has settled; counts the others as stale writes. */
async function resolveUnmatched(
  { db, worker }: WorkDeps,
  unmatched: readonly Settlement[],
  { settings, triedBefore, statuses }: Batch & Readonly<{ statuses: Map<string, Status | null> }>,
): Promise<void> {
  const rows = await db.query<SettledRow & { is_ours: boolean }>(sql`
    SELECT t.job_id, t.status, t.lease_epoch = leased.epoch AND t.status <> 'running' AS is_ours
    FROM ${unnestRows(sql`leased`, unmatched, leasedColumns)}
    JOIN jobs.job_queue t ON t.job_id = leased.key`);
  const found = new Map(rows.map((row) => [row.job_id, row]));
  let stale = 0;
  for (const { job, outcome } of unmatched) {
    const row = found.get(job.jobId);
    const isGone = row === undefined && outcome === 'completed' && !settings.keepCompleted;
    if (row?.is_ours === true) statuses.set(job.jobId, row.status);
    else if (isGone && triedBefore.has(job.jobId)) statuses.set(job.jobId, 'completed');
    else stale += 1;
  }
  if (stale > 0) worker.onStale(jobs.slice, stale);
}

const maxText = 4000;
const maxClassName = 200;
const maxStack = 8000;

function originOf(one: Uncompleted): ErrorOrigin | undefined {
  return one.outcome === 'failed' ? one.origin : undefined;
}

/** From the texts as they are stored, so that it can be derived again. */
function causeOf(one: Uncompleted): string {
  const errorClass = cleanOrNull(originOf(one)?.className, maxClassName) ?? undefined;
  const errorStack = cleanOrNull(originOf(one)?.stack, maxStack) ?? undefined;
  if (errorClass === undefined && errorStack === undefined) return fingerprintOfText(textOf(one));
  return fingerprintOf({ errorClass, errorMessage: textOf(one), errorStack });
}

function cleanOrNull(text: string | null | undefined, maxBytes: number): string | null {
  return text === null || text === undefined ? null : cleanText(text, maxBytes);
}

function textOf(one: Uncompleted): string {
  switch (one.outcome) {
    case 'failed':
      return cleanText(one.error, maxText);
    case 'deferred':
      return cleanText(one.reason, maxText);
    case 'unstarted':
      return '';
  }
}

/** Counts neither as a failure nor as a deferral. */
function isFree(one: Uncompleted): boolean {
  return one.outcome === 'unstarted' || (one.outcome === 'deferred' && one.isOutage === true);
}

function waitMsOf(one: Uncompleted): number {
  switch (one.outcome) {
    case 'failed':
      return one.retryAfterMs ?? 0;
    case 'deferred':
      return one.delayMs;
    case 'unstarted':
      return 0;
  }
}
