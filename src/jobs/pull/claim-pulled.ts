import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { unnestRows } from '../../platform/postgres/unnest-rows.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { claimJobs, isSoloJobDue, type ClaimedJob } from '../claim-jobs.ts';
import type { Status } from '../domain/job.ts';
import type { JobMetrics } from '../job-metrics.ts';
import { mustRunAlone, pulledOwnerPrefix, type WorkDeps } from '../jobs-table.ts';
import { payloadTooLarge } from '../read-payload.ts';
import { settleJobs, type Settlement } from '../settle-jobs.ts';

export type PullDeps = WorkDeps & Readonly<{ counts: Pick<JobMetrics, 'claimed' | 'settled'> }>;

export type PullRequest = Readonly<{
  queue: string;
  /** Lease owner. */
  owner: string;
  /** Who sends the request; null without authentication. */
  claimedBy: string | null;
  limit: number;
  leaseMs: number;
}>;

export type PulledJob = Readonly<{
  jobId: string;
  queue: string;
  /** JSON text. */
  payload: string;
  retryCount: number;
  maxRetries: number;
  epoch: bigint;
  leaseUntil: Date;
  dueForMs: number;
}>;

/** `isSoloDue`: a job that must run alone is due, or was until now. */
export type Pulled = Readonly<{ jobs: readonly PulledJob[]; isSoloDue: boolean }>;

/** Payload bytes per response; one job is returned in any case. */
export const maxPulledBytes = 4 * 1024 * 1024;

/**
 * Claims jobs for a worker outside of this process. A job that must run alone is given to a worker that has no other
 * job, and that worker gets none beside it.
 */
export async function claimPulled(
  deps: PullDeps,
  request: PullRequest & Readonly<{ looksForSolo: boolean }>,
): Promise<Pulled> {
  const { db, worker, queues, counts } = deps;
  const { queue, owner } = request;
  // A lease never extends beyond the job's timeout, which starts now.
  const leaseMs = Math.min(request.leaseMs, queues.settingsOf(queue).timeoutMs);
  const { rejected, ...pulled } = await db.transaction(async (tx) => {
    const inside: Database = { ...db, query: tx.query, transaction: (work) => work(tx) };
    const as: WorkDeps = { ...deps, db: inside, worker: { ...worker, db: inside, owner } };
    return claimInside(as, { ...request, leaseMs });
  });
  for (const { settlement, status } of rejected) counts.settled(queue, settlement, status);
  counts.claimed(queue, pulled.jobs);
  return pulled;
}

type Claim = Pulled & Pick<FittingJobs, 'rejected'>;

/**
 * Requests of the same worker wait for each other while one of them looks for a solo job: what it finds out about the
 * worker is valid until it commits.
 */
async function claimInside(
  deps: WorkDeps,
  request: PullRequest & Readonly<{ looksForSolo: boolean }>,
): Promise<Claim> {
  const { db: tx } = deps;
  const { queue, owner, leaseMs, claimedBy } = request;
  await lockOwner(tx, owner, request.looksForSolo);
  if (await hasSoloJob(tx, owner)) return { jobs: [], rejected: [], isSoloDue: false };
  const isSoloDue = request.looksForSolo && (await isSoloJobDue(tx, queue));
  const standing = isSoloDue ? await standingOf(tx, queue, owner) : null;
  if (standing !== null && standing.running === 0) {
    const { jobs } = await claimJobs(deps, {
      queue,
      leaseMs,
      claimedBy,
      limit: 1,
      isSolo: true,
      payloadAs: 'text',
      whole: { maxBytes: maxPulledBytes, isStrict: false },
    });
    const fitting = await rejectTooLarge(deps, queue, jobs);
    if (jobs.length > 0) return { ...fitting, jobs: await withLeases(tx, fitting.jobs), isSoloDue };
  }
  // One of the workers that are always busy gets no new jobs, until it has none and can take the solo job.
  if (standing?.is_first === true) return { jobs: [], rejected: [], isSoloDue };
  const fitting = await claimFitting(deps, request);
  return { ...fitting, jobs: await withLeases(tx, fitting.jobs), isSoloDue };
}

async function lockOwner(tx: Queryable, owner: string, isExclusive: boolean): Promise<void> {
  const key = sql`hashtextextended(${`jobs ${owner}`}, 0)`;
  await tx.query(
    isExclusive
      ? sql`SELECT pg_advisory_xact_lock(${key})`
      : sql`SELECT pg_advisory_xact_lock_shared(${key})`,
  );
}

async function hasSoloJob(tx: Queryable, owner: string): Promise<boolean> {
  const rows = await tx.query(sql`
    SELECT 1 FROM jobs.job_queue t
    WHERE t.status = 'running' AND ${mustRunAlone} AND t.lease_owner = ${owner}
    LIMIT 1`);
  return rows.length > 0;
}

type Standing = Readonly<{ running: number; is_first: boolean }>;

/** How many jobs the worker runs, and whether it is the first by name of the outside workers on the queue. */
async function standingOf(tx: Queryable, queue: string, owner: string): Promise<Standing | null> {
  const [row] = await tx.query<Standing>(sql`
    SELECT count(*) FILTER (WHERE t.lease_owner = ${owner})::int AS running,
           COALESCE(min(t.lease_owner) FILTER (WHERE t.queue = ${queue}) = ${owner}, false) AS is_first
    FROM jobs.job_queue t WHERE t.status = 'running' AND starts_with(t.lease_owner, ${pulledOwnerPrefix})`);
  return row ?? null;
}

/** `rejected`: claimed jobs that were settled at once because their payload is too large. */
type FittingJobs = Readonly<{
  jobs: readonly ClaimedJob[];
  rejected: readonly Readonly<{ settlement: Settlement; status: Status | null }>[];
}>;

/** Claimed before their size is known: measuring a hundred payloads of a megabyte takes a second. */
const firstClaim = 16;

/** Up to the limit, or as many as fit into a response: first a few, then as many as should fit by their size. */
async function claimFitting(
  deps: WorkDeps,
  { queue, leaseMs, limit, claimedBy }: PullRequest,
): Promise<FittingJobs> {
  const claimed: ClaimedJob[] = [];
  let bytes = 0;
  for (let more = Math.min(limit, firstClaim); more > 0;) {
    const whole = { maxBytes: maxPulledBytes - bytes, isStrict: claimed.length > 0 };
    const { jobs } = await claimJobs(deps, {
      queue,
      leaseMs,
      limit: more,
      claimedBy,
      payloadAs: 'text',
      whole,
    });
    claimed.push(...jobs);
    bytes += jobs.reduce((sum, { payload }) => sum + bytesOf(payload), 0);
    const fitting = Math.floor((maxPulledBytes - bytes) / (bytes / claimed.length));
    more = jobs.length < more ? 0 : Math.min(limit - claimed.length, fitting);
  }
  return rejectTooLarge(deps, queue, claimed);
}

async function rejectTooLarge(
  deps: WorkDeps,
  queue: string,
  claimed: readonly ClaimedJob[],
): Promise<FittingJobs> {
  const tooLarge = claimed.filter(({ payload }) => payload === null).map(payloadTooLarge);
  if (tooLarge.length === 0) return { jobs: claimed, rejected: [] };
  const settled = await settleJobs(deps, queue, tooLarge);
  const statuses = new Map(settled.map(({ jobId, status }) => [jobId, status]));
  return {
    jobs: claimed.filter(({ payload }) => payload !== null),
    rejected: tooLarge.map((settlement) => ({
      settlement,
      status: statuses.get(settlement.job.jobId) ?? null,
    })),
  };
}

function bytesOf(text: unknown): number {
  return typeof text === 'string' ? Buffer.byteLength(text) : 0;
}

/** Adds the ends of the leases, by the database's clock. */
async function withLeases(tx: Queryable, jobs: readonly ClaimedJob[]): Promise<readonly PulledJob[]> {
  if (jobs.length === 0) return [];
  const rows = await tx.query<{ job_id: string; lease_until: Date }>(sql`
    SELECT t.job_id, t.lease_until
    FROM ${unnestRows(sql`claimed`, jobs, [[sql`key`, sql`uuid[]`, ({ jobId }) => jobId]])}
    JOIN jobs.job_queue t ON t.job_id = claimed.key`);
  const leases = new Map(rows.map((row) => [row.job_id, row.lease_until]));
  return jobs.flatMap(({ jobId, queue, payload, retryCount, maxRetries, lease, dueForMs }) => {
    const leaseUntil = leases.get(jobId);
    if (leaseUntil === undefined) return [];
    // The claim asked for text.
    const text = payload as string;
    return [
      { jobId, queue, payload: text, retryCount, maxRetries, epoch: lease.epoch, leaseUntil, dueForMs },
    ];
  });
}
