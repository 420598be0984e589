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

/** Dead letters `t` that a filter means. */
function matches({ queue, error, createdFrom, createdTo, jobIds }: DeadFilter): Sql {
  const isNamed = jobIds === null ? sql`t.resolution IS NULL` : sql`t.job_id = ANY(${jobIds}::uuid[])`;
  return sql`t.status = 'dead_letter' AND ${isNamed}
    AND (${queue}::text IS NULL OR t.queue = ${queue})
    AND (${error}::text IS NULL OR starts_with(t.error_message, ${error}))
    AND (${createdFrom}::timestamptz IS NULL OR t.created_at >= ${createdFrom})
    AND (${createdTo}::timestamptz IS NULL OR t.created_at < ${createdTo})`;
}

/** Who has the dedupe key of the dead letter `t`. */
const keyHolder = sql`
    SELECT h.job_id FROM jobs.job_queue h
    WHERE h.queue = t.queue AND h.dedupe_key = t.dedupe_key AND h.${isUnfinished}`;

export async function findDead(db: Queryable, filter: DeadFilter, limit: number): Promise<FoundDead> {
  const free = await db.query<{ job_id: string }>(sql`
    SELECT t.job_id FROM jobs.job_queue t
    WHERE ${matches(filter)} AND (t.dedupe_key IS NULL OR NOT EXISTS (${keyHolder}))
    ORDER BY t.completed_at, t.job_id
    LIMIT ${limit}`);
  const taken = await db.query<{ job_id: string; holder: string }>(sql`
    SELECT t.job_id, holder.job_id AS holder
    FROM jobs.job_queue t CROSS JOIN LATERAL (${keyHolder}) AS holder
    WHERE ${matches(filter)} AND t.dedupe_key IS NOT NULL
    ORDER BY t.completed_at, t.job_id
    LIMIT ${limit}`);
  return {
    jobIds: free.map((row) => row.job_id),
    keyTaken: taken.map((row) => ({ jobId: row.job_id, why: 'key_taken', holder: row.holder })),
  };
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
    WHERE ${matches(asked.filter)}
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

export async function previewDead(db: Queryable, filter: DeadFilter): Promise<RequeuePreview> {
  const [counts] = await db.query<{ matched: number; key_taken: number }>(sql`
    SELECT count(*)::int AS matched,
           count(*) FILTER (WHERE t.dedupe_key IS NOT NULL AND EXISTS (${keyHolder}))::int AS key_taken
    FROM (SELECT t.queue, t.dedupe_key FROM jobs.job_queue t WHERE ${matches(filter)}
          LIMIT ${countedUpTo + 1}) AS t`);
  const sample = await db.query<SampleRow>(sql`
    SELECT t.job_id, t.queue, left(t.error_message, ${shownErrorLength}) AS error, t.created_at, t.completed_at
    FROM jobs.job_queue t
    WHERE ${matches(filter)}
    ORDER BY t.completed_at, t.job_id
    LIMIT ${sampleSize}`);
  const matched = counts?.matched ?? 0;
  return {
    matched: Math.min(matched, countedUpTo),
    isMore: matched > countedUpTo,
    keyTaken: counts?.key_taken ?? 0,
    sample: sample.map(sampleOf),
  };
}

function sampleOf(row: SampleRow): DeadSample {
  const { job_id: jobId, queue, error, created_at: createdAt, completed_at: completedAt } = row;
  return { jobId, queue, error, createdAt, completedAt };
}
