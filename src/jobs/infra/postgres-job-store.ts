import type { Database } from '../../platform/postgres/database.ts';
import { rowsOf } from '../../platform/postgres/rows-of.ts';
import { persist } from '../../platform/postgres/persist.ts';
import { prepared, sql, type Sql } from '../../platform/postgres/sql.ts';
import { notify } from '../../platform/postgres/wake.ts';
import { reap, renew, settle, type Worker } from '../../platform/postgres/work.ts';
import type { Status } from '../domain/job.ts';
import type { QueueSettings } from '../domain/queue-settings.ts';
import type { JobEnd, JobStore, SettledJob } from '../usecase/ports.ts';
import { claimFree, isLast } from './claim-jobs.ts';
import { backoffOf, jobs, noteFailures, tellOfDead } from './jobs-table.ts';
import { jobsChannel } from './jobs-channel.ts';
import { claimLimited } from './limited-claim.ts';
import { findOverdue, isOverdue, overdueRows } from './overdue-pulls.ts';
import type { QueueBook } from './postgres-queue-book.ts';
import { settleJobs } from './settle-jobs.ts';

export type JobStoreOptions = Readonly<{
  book: Pick<QueueBook, 'settingsOf' | 'isLimited'>;
  onSettleRetry: (error: unknown) => void;
  onReaped?: (job: ReapedJob) => void;
}>;

/** What has become of a job whose worker was lost. */
export type ReapedJob = Readonly<{
  jobId: string;
  queue: string;
  status: 'failed' | 'dead_letter';
  error: string;
  retryCount: number;
}>;

const reapBatch = 500;
const settleWithinMs = 60_000;
/** So many times as long as a look took, the next one waits. */
const reapRest = 20;

export function createPostgresJobStore(
  db: Database,
  worker: Worker,
  { book, onSettleRetry, onReaped = () => {} }: JobStoreOptions,
): JobStore {
  /** What has ended may have made room for others. Who is not told of it finds out by polling. */
  const tellOfRoom = async (queue: string): Promise<void> => {
    if (book.isLimited(queue)) await notify(db, jobsChannel(queue)).catch(() => {});
  };

  let reapAtMs = 0;

  return {
    async enqueue(job) {
      const statement = sql`
        SELECT job_id, status, is_duplicate
        FROM jobs.enqueue(${job.queue}, ${job.payload}::jsonb, ${job.dedupeKey}, ${job.priority}, ${job.runAt},
                          ${job.maxRetries}, ${job.trace})`;
      const [row] = await db.query<{ job_id: string; status: Status; is_duplicate: boolean }>(
        prepared(statement),
      );
      if (row === undefined) throw new Error('jobs.enqueue gave no row');
      return { jobId: row.job_id, status: row.status, isDuplicate: row.is_duplicate };
    },

    claim: (options) =>
      book.isLimited(options.queue) ? claimLimited(db, worker, options) : claimFree(worker, options),

    async hasAlone(queue) {
      const rows = await db.query(sql`
        SELECT 1 FROM jobs.job_queue t
        WHERE t.queue = ${queue} AND t.status IN ('pending', 'failed') AND t.sort_at <= now() AND ${isLast}
          AND NOT EXISTS (SELECT 1 FROM jobs.queues q WHERE q.queue = ${queue} AND q.paused)
        LIMIT 1`);
      return rows.length > 0;
    },

    async readPayload({ jobId, lease }) {
      const [row] = await db.query<{ payload: string }>(sql`
        SELECT payload::text AS payload FROM jobs.job_queue
        WHERE job_id = ${jobId} AND lease_epoch = ${lease.epoch} AND status = 'running'`);
      return row === undefined ? null : { payload: JSON.parse(row.payload) };
    },

    async saveProgress(said) {
      await db.query(sql`
        UPDATE jobs.job_queue t SET progress = held.progress
        FROM ${rowsOf(sql`held`, said, [
          [sql`key`, sql`uuid[]`, ({ job }) => job.jobId],
          [sql`epoch`, sql`bigint[]`, ({ job }) => job.lease.epoch],
          [sql`progress`, sql`jsonb[]`, ({ progress }) => progress],
        ])}
        WHERE t.job_id = held.key AND t.lease_epoch = held.epoch AND t.status = 'running'`);
    },

    async settle(queue, ends, until = AbortSignal.timeout(settleWithinMs)) {
      const settled: SettledJob[] = [];
      const tried = new Set<string>();
      const store = async (items: readonly JobEnd[]): Promise<void> => {
        const before = new Set(tried);
        for (const { job } of items) tried.add(job.jobId);
        const deps = {
          db,
          worker,
          settings: book.settingsOf(queue),
          wasTried: (id: string) => before.has(id),
        };
        settled.push(...(await settleJobs(deps, items)));
      };
      await persist(
        ends.toSorted((a, b) => (a.job.jobId < b.job.jobId ? -1 : 1)),
        {
          store,
          storeCulprit: (end) => store([withoutText(end)]),
          until,
          onRetry: onSettleRetry,
          isolatesSlow: true,
        },
      ).catch((error: unknown) => {
        // What was written is told of, whatever became of the others.
        if (settled.length === 0) throw error;
        onSettleRetry(error);
      });
      await tellOfRoom(queue);
      return settled;
    },

    async renew(held, leaseMs) {
      const renewed = await renew<string>(worker, jobs, {
        keys: held.map(({ jobId }) => jobId),
        epochs: held.map(({ lease }) => lease.epoch),
        leaseMs,
      });
      return { jobIds: renewed.keys, locked: renewed.locked, endsAtMs: renewed.endsAtMs };
    },

    async reap() {
      const begin = worker.clock.monotonicMs();
      if (begin < reapAtMs) return 0;
      const queues = await db.query<{ queue: string }>(sql`
        SELECT DISTINCT queue FROM jobs.job_queue WHERE status = 'running'`);
      let reaped = 0;
      for (const { queue } of queues) {
        const lost = await reapQueue(db, queue, book.settingsOf(queue));
        for (const job of lost) onReaped(job);
        if (lost.length > 0) await tellOfRoom(queue);
        reaped += lost.length;
      }
      // Beside a long transaction elsewhere it steps over all that has ended since: then it looks less often.
      const end = worker.clock.monotonicMs();
      reapAtMs = reaped > 0 ? 0 : end + reapRest * (end - begin);
      return reaped;
    },
  };
}

type ReapedRow = Readonly<{
  job_id: string;
  queue: string;
  status: ReapedJob['status'];
  error_message: string;
  retry_count: number;
}>;

/** Ends what was lost, and what was pulled and has outstayed its time: that is a failure like any other. */
async function reapQueue(
  db: Database,
  queue: string,
  { backoff, timeoutMs }: QueueSettings,
): Promise<readonly ReapedJob[]> {
  const isDead: Sql = sql`t.retry_count + 1 >= t.max_retries`;
  const dueAt: Sql = sql`now() + ${backoffOf(sql`t.retry_count + 1`, backoff)} * interval '1 millisecond'`;
  const failedWith = (error: string): Sql => sql`
      status = CASE WHEN ${isDead} THEN 'dead_letter' ELSE 'failed' END,
      retry_count = t.retry_count + 1,
      error_message = ${error},
      run_at = ${dueAt}, sort_at = ${dueAt},
      completed_at = CASE WHEN ${isDead} THEN clock_timestamp() END`;
  const endedOf = (worker: Sql): Sql => sql`
      t.job_id, t.queue, t.status, t.retry_count, t.error_message, ${worker} AS worker, t.lease_epoch, t.started_at,
      true AS has_failed`;
  const overdue = await findOverdue(db, { queue, timeoutMs, limit: reapBatch });
  const late =
    overdue.length === 0
      ? []
      : await settle<ReapedRow>(db, jobs, {
          held: overdueRows(overdue),
          count: overdue.length,
          guard: sql`t.status = 'running'`,
          set: sql`
      ${failedWith(`timeout: no end within ${timeoutMs} ms`)}, lease_epoch = nextval('platform.lease_epochs')`,
          returning: endedOf(sql`held.worker`),
          also: sql`${noteFailures(sql`settled`)}${tellOfDead(sql`settled`)}`,
        });
  const lost = await reap<ReapedRow>(db, jobs, {
    where: sql`t.queue = ${queue} AND t.status = 'running' AND NOT ${isOverdue(timeoutMs)}`,
    limit: reapBatch,
    set: failedWith('the worker was lost while it ran the job'),
    returning: endedOf(sql`NULL::text`),
    also: sql`${noteFailures(sql`reaped`)}${tellOfDead(sql`reaped`)}`,
  });
  return [...late, ...lost].map((row) => ({
    jobId: row.job_id,
    queue: row.queue,
    status: row.status,
    error: row.error_message,
    retryCount: row.retry_count,
  }));
}

/** A text from outside that the database refuses never keeps a job open. */
function withoutText(end: JobEnd): JobEnd {
  switch (end.end) {
    case 'completed':
      return { ...end, result: null };
    case 'failed':
      return { ...end, error: 'the error text could not be stored' };
    case 'deferred':
    case 'unstarted':
      return end;
  }
}
