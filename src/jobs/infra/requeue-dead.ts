import { cleanText } from '../../kernel/text.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { rowsOf } from '../../platform/postgres/rows-of.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { notify } from '../../platform/postgres/wake.ts';
import type {
  DeadFilter,
  DeadSample,
  Decision,
  FoundDead,
  RequeuedBatch,
  RequeuePreview,
  SkippedJob,
} from '../usecase/acting-ports.ts';
import { jobsChannel } from './jobs-channel.ts';

const isUnfinished = sql`status IN ('pending', 'running', 'failed')`;

/** The dead letters `t` among which a filter looks: what an index knows about them. */
function scopeOf({ queue, jobIds }: DeadFilter): Sql {
  const isNamed = jobIds === null ? sql`t.resolution IS NULL` : sql`t.job_id = ANY(${jobIds}::uuid[])`;
  return sql`t.status = 'dead_letter' AND ${isNamed} AND (${queue}::text IS NULL OR t.queue = ${queue})`;
}

/** What each of them is asked besides. */
function restOf({ error, createdFrom, createdTo }: DeadFilter): Sql {
  return sql`(
    (${error}::text IS NULL OR starts_with(t.error_message, ${error}))
    AND (${createdFrom}::timestamptz IS NULL OR t.created_at >= ${createdFrom})
    AND (${createdTo}::timestamptz IS NULL OR t.created_at < ${createdTo})) IS TRUE`;
}

/** Who has the dedupe key of the dead letter `t`. As one value: by EXISTS, all keys in use might be read first. */
const keyHolder = sql`(
    SELECT h.job_id FROM jobs.job_queue h
    WHERE h.queue = t.queue AND h.dedupe_key = t.dedupe_key AND h.${isUnfinished}
    LIMIT 1)`;

/** How far a look goes at once, and until when it goes on. */
export type Look = Readonly<{ stepRows?: number; until?: AbortSignal }>;

const lookWithinMs = 10_000;

type Match = Readonly<{ job_id: string; holder: string | null }>;
type SeenRow = Match & Readonly<{ is_match: boolean; is_end: boolean }>;

/**
 * Goes through the dead letters of a filter, the oldest first, and hands over those that match until `take` has
 * enough. No index knows their errors and times, and there may be millions: each statement looks at a bounded number,
 * and after a while the look ends. Whether it has seen all.
 */
async function lookThrough(
  db: Queryable,
  { filter, stepRows = 5000, until = AbortSignal.timeout(lookWithinMs) }: Look & { filter: DeadFilter },
  take: (found: readonly Match[]) => 'enough' | 'more',
): Promise<boolean> {
  for (let after: string | null = null; ;) {
    const rows: readonly SeenRow[] = await db.query<SeenRow>(sql`
      WITH seen AS MATERIALIZED (
        SELECT t.job_id, t.queue, t.dedupe_key, ${restOf(filter)} AS is_match
        FROM jobs.job_queue t
        WHERE ${scopeOf(filter)} AND (${after}::uuid IS NULL OR t.job_id > ${after})
        ORDER BY t.job_id
        LIMIT ${stepRows}
      ), t AS (
        SELECT *, row_number() OVER (ORDER BY job_id) = ${stepRows} AS is_end FROM seen
      )
      SELECT t.job_id, t.is_match, t.is_end, CASE WHEN t.is_match THEN ${keyHolder} END AS holder
      FROM t WHERE t.is_match OR t.is_end
      ORDER BY t.job_id`);
    const isEnough = take(rows.filter((row) => row.is_match)) === 'enough';
    const last = rows.at(-1);
    if (last?.is_end !== true) return true;
    if (isEnough || until.aborted) return false;
    after = last.job_id;
  }
}

export async function findDead(
  db: Queryable,
  filter: DeadFilter,
  limit: number,
  look: Look = {},
): Promise<FoundDead> {
  const jobIds: string[] = [];
  const keyTaken: SkippedJob[] = [];
  const isAll = await lookThrough(db, { ...look, filter }, (found) => {
    for (const { job_id: jobId, holder } of found)
      if (holder === null) jobIds.push(jobId);
      else if (keyTaken.length < limit) keyTaken.push({ jobId, why: 'key_taken', holder });
    return jobIds.length >= limit ? 'enough' : 'more';
  });
  return { jobIds: jobIds.slice(0, limit), keyTaken, isAll };
}

type DeadRow = Readonly<{ job_id: string; queue: string; dedupe_key: string | null }>;

/** Of two that have the same dedupe key the first is requeued, and has it then. */
export async function requeueAll(
  tx: Queryable,
  asked: Readonly<{ jobIds: readonly string[]; filter: DeadFilter; by: Decision }>,
): Promise<RequeuedBatch> {
  const dead = await tx.query<DeadRow>(sql`
    SELECT t.job_id, t.queue, t.dedupe_key
    FROM ${rowsOf(sql`wanted`, asked.jobIds, [[sql`key`, sql`uuid[]`, (jobId) => jobId]])}
    JOIN jobs.job_queue t ON t.job_id = wanted.key
    WHERE ${scopeOf(asked.filter)} AND ${restOf(asked.filter)}
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
  if (free.length > 0) await requeueFree(tx, free, asked.by);
  return { requeued: free.length, skipped };
}

function keyOf({ queue, dedupe_key: key }: DeadRow): string | null {
  return key === null ? null : JSON.stringify([queue, key]);
}

/** Who has the keys of these jobs now. */
async function holdersOf(tx: Queryable, dead: readonly DeadRow[]): Promise<Map<string, string>> {
  const withKey = dead.filter(({ dedupe_key: key }) => key !== null);
  if (withKey.length === 0) return new Map();
  const rows = await tx.query<DeadRow>(sql`
    SELECT DISTINCT t.job_id, t.queue, t.dedupe_key
    FROM ${rowsOf(sql`wanted`, withKey, [
      [sql`queue`, sql`text[]`, ({ queue }) => queue],
      [sql`dedupe_key`, sql`text[]`, ({ dedupe_key: key }) => key],
    ])}
    JOIN jobs.job_queue t ON t.queue = wanted.queue AND t.dedupe_key = wanted.dedupe_key
    WHERE t.${isUnfinished}`);
  return new Map(rows.map((row) => [keyOf(row) ?? '', row.job_id]));
}

/** What else belongs to a requeued job, a new epoch above all, the table's trigger completes. */
async function requeueFree(tx: Queryable, free: readonly DeadRow[], by: Decision): Promise<void> {
  const reason = by.reason === null ? null : cleanText(by.reason, 1000);
  await tx.query(sql`
    WITH requeued AS (
      UPDATE jobs.job_queue t SET status = 'pending', retry_count = 0
      FROM ${rowsOf(sql`free`, free, [[sql`key`, sql`uuid[]`, ({ job_id: jobId }) => jobId]])}
      WHERE t.job_id = free.key AND t.status = 'dead_letter'
      RETURNING t.job_id
    )
    INSERT INTO jobs.job_actions (job_id, action, status_from, status_to, actor, reason)
    SELECT job_id, 'requeue', 'dead_letter', 'pending', ${by.actor}, ${reason} FROM requeued`);
  for (const queue of new Set(free.map((job) => job.queue))) await notify(tx, jobsChannel(queue));
}

const countedUpTo = 10_000;
const sampleSize = 10;
const shownErrorLength = 500;

type SampleRow = Readonly<{
  job_id: string;
  queue: string;
  error: string | null;
  created_at: Date;
  completed_at: Date | null;
}>;

export async function previewDead(
  db: Queryable,
  filter: DeadFilter,
  look: Look = {},
): Promise<RequeuePreview> {
  const first: string[] = [];
  let matched = 0;
  let keyTaken = 0;
  const isAll = await lookThrough(db, { ...look, filter }, (found) => {
    const counted = found.slice(0, countedUpTo - matched);
    first.push(...counted.slice(0, sampleSize - first.length).map((row) => row.job_id));
    keyTaken += counted.filter((row) => row.holder !== null).length;
    matched += found.length;
    return matched > countedUpTo ? 'enough' : 'more';
  });
  const sample = await db.query<SampleRow>(sql`
    SELECT t.job_id, t.queue, left(t.error_message, ${shownErrorLength}) AS error, t.created_at, t.completed_at
    FROM jobs.job_queue t
    WHERE t.job_id = ANY(${first}::uuid[])
    ORDER BY t.job_id`);
  return {
    matched: Math.min(matched, countedUpTo),
    isMore: !isAll || matched > countedUpTo,
    keyTaken,
    sample: sample.map(sampleOf),
  };
}

function sampleOf(row: SampleRow): DeadSample {
  const { job_id: jobId, queue, error, created_at: createdAt, completed_at: completedAt } = row;
  return { jobId, queue, error, createdAt, completedAt };
}
