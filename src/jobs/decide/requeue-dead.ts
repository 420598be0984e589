import type { Clock } from '../../kernel/clock.ts';
import { recordOperation } from '../../platform/audit/record-operation.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { unnestRows } from '../../platform/postgres/unnest-rows.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { notify } from '../../platform/work/wake.ts';
import { jobsChannel } from '../channels.ts';
import { storedReason, type DecideDeps, type Decision } from './act-on-job.ts';
import {
  findDead,
  isUnfinished,
  restOf,
  scopeOf,
  type DeadFilter,
  type FoundDead,
  type SkippedJob,
} from './find-dead.ts';
import { unlessContended } from './unless-contended.ts';

export type RequeueDeps = DecideDeps & Readonly<{ clock: Clock }>;

export type RequeueRequest = Readonly<{ filter: DeadFilter; limit: number; by: Decision }>;

export type Requeued = Readonly<{
  requeued: number;
  skipped: number;
  /** The first hundred. */
  skippedJobs: readonly SkippedJob[];
  /** More dead letters match, or may match because not all were searched. */
  isMore: boolean;
}>;

const batchSize = 100;
const maxListed = 100;
/** Below the 30 s after which many proxies give up; what is left is answered as such. */
const withinMs = 20_000;

/**
 * Requeues dead letters by a filter: finds the matching ids once, then requeues them in batches, each in a short
 * transaction that checks the filter again. So concurrent requests do not requeue a job twice, and a request that is
 * repeated after a lost response continues with the rest. A batch with a locked row or dedupe key is halved until that
 * job is alone, and the job is skipped.
 */
export async function requeueDead(deps: RequeueDeps, request: RequeueRequest): Promise<Requeued> {
  const { filter, limit, by } = request;
  const endsAtMs = deps.clock.monotonicMs() + withinMs;
  const found = await findDead(deps.db, filter, limit + 1);
  const jobIds = found.jobIds.slice(0, limit);
  if (jobIds.length === 0) return requeueFound(deps, request, { ...found, jobIds, endsAtMs });
  const { queue } = filter;
  const about = { resource: 'jobs/jobs', ...(queue === null ? {} : { names: { queues: [queue] } }) };
  const result = await recordOperation(
    deps.db,
    by.act,
    { ...about, items: jobIds.length, detail: { event: 'requeue', filter: described(filter) } },
    {
      run: () => requeueFound(deps, request, { ...found, jobIds, endsAtMs }),
      endOf: ({ requeued, skipped }) => ({
        items: requeued,
        detail: { event: 'requeue', requeued, skipped },
      }),
    },
  );
  return { ...result, isMore: result.isMore || found.jobIds.length > limit };
}

async function requeueFound(
  deps: RequeueDeps,
  request: RequeueRequest,
  found: FoundDead & Readonly<{ endsAtMs: number }>,
): Promise<Requeued> {
  const { clock, log } = deps;
  const { jobIds, endsAtMs } = found;
  const { by } = request;
  const skippedJobs: SkippedJob[] = [];
  let requeued = 0;
  let skipped = 0;
  const skip = (jobs: readonly SkippedJob[]): void => {
    skipped += jobs.length;
    skippedJobs.push(...jobs.slice(0, Math.max(0, maxListed - skippedJobs.length)));
  };
  skip(found.keyTaken);
  let at = 0;
  for (let size = batchSize; at < jobIds.length && clock.monotonicMs() < endsAtMs;) {
    const batch = jobIds.slice(at, at + size);
    const done = await requeueBatch(deps, batch, request);
    if (done === null && batch.length > 1) {
      size = Math.ceil(batch.length / 2);
      continue;
    }
    requeued += done?.requeued ?? 0;
    skip(done?.skipped ?? batch.map((jobId) => ({ jobId, why: 'busy', holder: null })));
    at += batch.length;
    size = Math.min(batchSize, size * 2);
  }
  log.info({ requeued, skipped, actor: by.actor, reason: by.reason }, 'requeued dead letters');
  return { requeued, skipped, skippedJobs, isMore: !found.isAll || jobIds.length > at };
}

/** The jobs themselves have it in their history. */
function described({ jobIds, ...rest }: DeadFilter): object {
  return { ...rest, jobIds: jobIds?.length ?? null };
}

type RequeuedBatch = Readonly<{ requeued: number; skipped: readonly SkippedJob[] }>;

/** Null, with nothing changed, if another transaction has locked one of the rows. */
function requeueBatch(
  { db }: RequeueDeps,
  jobIds: readonly string[],
  request: RequeueRequest,
): Promise<RequeuedBatch | null> {
  // A batch gives up early: it is tried again with fewer jobs.
  const setLockTimeout =
    jobIds.length === 1 ? sql`SET LOCAL lock_timeout = '2s'` : sql`SET LOCAL lock_timeout = '500ms'`;
  return unlessContended(() =>
    db.transaction(async (tx) => {
      await tx.query(setLockTimeout);
      return requeueMatching(tx, jobIds, request);
    }),
  );
}

type DeadRow = Readonly<{ job_id: string; queue: string; dedupe_key: string | null }>;

/** Requeues those that still match. Of two with the same dedupe key only the first is requeued. */
async function requeueMatching(
  tx: Queryable,
  jobIds: readonly string[],
  request: RequeueRequest,
): Promise<RequeuedBatch> {
  const dead = await tx.query<DeadRow>(sql`
    SELECT t.job_id, t.queue, t.dedupe_key
    FROM ${unnestRows(sql`wanted`, jobIds, [[sql`key`, sql`uuid[]`, (jobId) => jobId]])}
    JOIN jobs.job_queue t ON t.job_id = wanted.key
    WHERE ${scopeOf(request.filter)} AND ${restOf(request.filter)}
    ORDER BY t.job_id
    FOR UPDATE OF t`);
  const holders = await holdersOf(tx, dead);
  const free: DeadRow[] = [];
  const skipped: SkippedJob[] = [];
  for (const job of dead) {
    const key = keyOf(job);
    const holder = key === null ? undefined : holders.get(key);
    if (holder !== undefined) {
      skipped.push({ jobId: job.job_id, why: 'key_taken', holder });
      continue;
    }
    free.push(job);
    if (key !== null) holders.set(key, job.job_id);
  }
  if (free.length > 0) await requeueFree(tx, free, request.by);
  return { requeued: free.length, skipped };
}

function keyOf({ queue, dedupe_key: key }: DeadRow): string | null {
  return key === null ? null : JSON.stringify([queue, key]);
}

/** The jobs that have these dedupe keys now. */
async function holdersOf(tx: Queryable, dead: readonly DeadRow[]): Promise<Map<string, string>> {
  const withKey = dead.filter(({ dedupe_key: key }) => key !== null);
  if (withKey.length === 0) return new Map();
  const rows = await tx.query<DeadRow>(sql`
    SELECT DISTINCT t.job_id, t.queue, t.dedupe_key
    FROM ${unnestRows(sql`wanted`, withKey, [
      [sql`queue`, sql`text[]`, ({ queue }) => queue],
      [sql`dedupe_key`, sql`text[]`, ({ dedupe_key: key }) => key],
    ])}
    JOIN jobs.job_queue t ON t.queue = wanted.queue AND t.dedupe_key = wanted.dedupe_key
    WHERE t.${isUnfinished}`);
  return new Map(rows.map((row) => [keyOf(row) ?? '', row.job_id]));
}

/** A trigger sets the other columns, above all a new epoch. */
async function requeueFree(tx: Queryable, free: readonly DeadRow[], by: Decision): Promise<void> {
  await tx.query(sql`
    WITH requeued AS (
      UPDATE jobs.job_queue t SET status = 'pending', retry_count = 0
      FROM ${unnestRows(sql`free`, free, [[sql`key`, sql`uuid[]`, ({ job_id: jobId }) => jobId]])}
      WHERE t.job_id = free.key AND t.status = 'dead_letter'
      RETURNING t.job_id
    )
    INSERT INTO jobs.job_actions (job_id, action, status_from, status_to, actor, reason)
    SELECT job_id, 'requeue', 'dead_letter', 'pending', ${by.actor}, ${storedReason(by)} FROM requeued`);
  for (const queue of new Set(free.map((job) => job.queue))) await notify(tx, jobsChannel(queue));
}
