import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { rowsOf } from '../../platform/postgres/rows-of.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { Worker } from '../../platform/postgres/work.ts';
import type { Status } from '../domain/job.ts';
import { defaultSettings } from '../domain/queue-settings.ts';
import type { HeldJob, PulledJob, PullRequest, PullStore } from '../usecase/acting-ports.ts';
import type { ClaimedJob, JobStore } from '../usecase/ports.ts';
import { isLast } from './claim-jobs.ts';
import { claimWhatFits, payloadOf } from './claim-what-fits.ts';
import type { QueueBook } from './postgres-queue-book.ts';

export type PullStoreDeps = Readonly<{
  db: Database;
  worker: Worker;
  book: Pick<QueueBook, 'settingsOf'>;
  /** The store of the slice, for this database and in this worker's name. */
  jobStoreFor: (db: Database, worker: Worker) => Pick<JobStore, 'claim' | 'hasAlone' | 'settle'>;
}>;

export function createPostgresPullStore({ db, worker, book, jobStoreFor }: PullStoreDeps): PullStore {
  return {
    claim: (asked) =>
      db.transaction(async (tx) => {
        const inside: Database = { ...db, query: tx.query, transaction: (work) => work(tx) };
        const store = jobStoreFor(inside, { ...worker, db: inside, owner: asked.owner });
        const { timeoutMs } = book.settingsOf(asked.queue);
        // No lease reaches beyond the job's time, which runs from now on.
        return claimFor(tx, store, { ...asked, leaseMs: Math.min(asked.leaseMs, timeoutMs) });
      }),

    async find(jobId) {
      const [row] = await db.query<HeldRow>(sql`
        SELECT job_id, queue, status, lease_epoch, lease_owner, started_at, retry_count
        FROM jobs.job_queue WHERE job_id = ${jobId}`);
      return row === undefined ? null : heldJobOf(row);
    },

    /** Tried again in time, as every settle: what is written down, and whose answer is lost, is told nevertheless. */
    async settle(queue, owner, end) {
      const as = owner === null ? worker : { ...worker, owner };
      const [settled] = await jobStoreFor(db, as).settle(queue, [end], AbortSignal.timeout(settleWithinMs));
      return settled?.status ?? null;
    },

    async renew({ jobId, epoch, leaseMs, progress }) {
      const timeEndsAt = sql`(t.started_at + interval '1 millisecond' * COALESCE(
        (SELECT q.timeout_ms FROM jobs.queues q WHERE q.queue = t.queue), ${defaultSettings.timeoutMs}))`;
      const [row] = await db.query<{ status: Status; lease_until: Date }>(sql`
        UPDATE jobs.job_queue t
        SET lease_until = GREATEST(t.lease_until, LEAST(
              clock_timestamp() + ${leaseMs} * interval '1 millisecond', ${timeEndsAt})),
            progress = COALESCE(${progress}::jsonb, t.progress)
        WHERE t.job_id = ${jobId} AND t.lease_epoch = ${epoch} AND t.status = 'running'
          AND clock_timestamp() < ${timeEndsAt}
        RETURNING t.status, t.lease_until`);
      return row === undefined ? null : { status: row.status, leaseUntil: row.lease_until };
    },
  };
}

type Claims = Readonly<{ jobs: readonly PulledJob[]; aloneIsDue: boolean }>;

/**
 * Requests in the name of one worker wait for each other where one of them looks for a job that must run alone: what
 * it finds about the worker holds until it commits.
 */
async function claimFor(
  tx: Queryable,
  store: Pick<JobStore, 'claim' | 'hasAlone' | 'settle'>,
  asked: PullRequest,
): Promise<Claims> {
  const { queue, owner, leaseMs, limit } = asked;
  await lockOwner(tx, owner, asked.looksForAlone);
  if (await runsAlone(tx, owner)) return { jobs: [], aloneIsDue: false };
  const aloneIsDue = asked.looksForAlone && (await store.hasAlone(queue));
  const standing = aloneIsDue ? await standingOf(tx, queue, owner) : null;
  if (standing !== null && standing.held === 0) {
    const { jobs } = await store.claim({
      queue,
      leaseMs,
      limit: 1,
      lane: 'alone',
      after: null,
      payloadAs: 'text',
    });
    if (jobs.length > 0) return { jobs: await readPulled(tx, jobs), aloneIsDue };
  }
  // Of the workers that always have something to do, one makes room for it.
  if (standing?.is_first === true) return { jobs: [], aloneIsDue };
  return { jobs: await readPulled(tx, await claimWhatFits(store, { queue, leaseMs, limit })), aloneIsDue };
}

async function lockOwner(tx: Queryable, owner: string, isExclusive: boolean): Promise<void> {
  const key = sql`hashtextextended(${`jobs ${owner}`}, 0)`;
  await tx.query(
    isExclusive
      ? sql`SELECT pg_advisory_xact_lock(${key})`
      : sql`SELECT pg_advisory_xact_lock_shared(${key})`,
  );
}

async function runsAlone(tx: Queryable, owner: string): Promise<boolean> {
  const rows = await tx.query(sql`
    SELECT 1 FROM jobs.job_queue t
    WHERE t.status = 'running' AND ${isLast} AND t.lease_owner = ${owner}
    LIMIT 1`);
  return rows.length > 0;
}

/** How many jobs it has, and whether it is the first by name of those from outside that work on the queue. */
async function standingOf(
  tx: Queryable,
  queue: string,
  owner: string,
): Promise<Readonly<{ held: number; is_first: boolean }> | null> {
  const [row] = await tx.query<Readonly<{ held: number; is_first: boolean }>>(sql`
    SELECT count(*) FILTER (WHERE t.lease_owner = ${owner})::int AS held,
           COALESCE(min(t.lease_owner) FILTER (WHERE t.queue = ${queue}) = ${owner}, false) AS is_first
    FROM jobs.job_queue t WHERE t.status = 'running' AND starts_with(t.lease_owner, ${pulledBy})`);
  return row ?? null;
}

/** Whoever asks over HTTP may ask again: it does not wait longer for a database that is away. */
const settleWithinMs = 5000;

/** How the owners of pulled jobs begin. */
export const pulledBy = 'pull:';

/** With their leases by the clock of the database. */
async function readPulled(tx: Queryable, jobs: readonly ClaimedJob[]): Promise<readonly PulledJob[]> {
  if (jobs.length === 0) return [];
  const rows = await tx.query<{ job_id: string; lease_until: Date }>(sql`
    SELECT t.job_id, t.lease_until
    FROM ${rowsOf(sql`claimed`, jobs, [[sql`key`, sql`uuid[]`, ({ jobId }) => jobId]])}
    JOIN jobs.job_queue t ON t.job_id = claimed.key`);
  const leases = new Map(rows.map((row) => [row.job_id, row.lease_until]));
  return jobs.flatMap((job) => {
    const leaseUntil = leases.get(job.jobId);
    if (leaseUntil === undefined) return [];
    const { jobId, queue, retryCount, maxRetries, lease } = job;
    const payload = payloadOf(job);
    return [{ jobId, queue, payload, retryCount, maxRetries, epoch: lease.epoch, leaseUntil }];
  });
}

type HeldRow = Readonly<{
  job_id: string;
  queue: string;
  status: Status;
  lease_epoch: bigint;
  lease_owner: string | null;
  started_at: Date | null;
  retry_count: number;
}>;

function heldJobOf(row: HeldRow): HeldJob {
  return {
    jobId: row.job_id,
    queue: row.queue,
    status: row.status,
    epoch: row.lease_epoch,
    owner: row.lease_owner,
    startedAt: row.started_at,
    retryCount: row.retry_count,
  };
}
