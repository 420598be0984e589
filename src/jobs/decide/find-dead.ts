import { longestMatch } from '../../kernel/protect/protection.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';

/** Dead letters. Cancelled and discarded ones match only by their id. */
export type DeadFilter = Readonly<{
  queue: string | null;
  /** Prefix of the error message. */
  error: string | null;
  fingerprint: string | null;
  createdFrom: Date | null;
  createdTo: Date | null;
  jobIds: readonly string[] | null;
}>;

/** `holder`: the unfinished job that has the dedupe key. */
export type SkippedJob = Readonly<{ jobId: string; why: 'key_taken' | 'busy'; holder: string | null }>;

/** Oldest first. Jobs whose dedupe key is taken are listed apart: they would use up the limit on every request. */
export type FoundDead = Readonly<{
  jobIds: readonly string[];
  keyTaken: readonly SkippedJob[];
  /** The search has seen all dead letters. */
  isAll: boolean;
}>;

export type DeadSample = Readonly<{
  jobId: string;
  queue: string;
  /** Longer than it is shown. */
  error: string | null;
  createdAt: Date;
  completedAt: Date | null;
}>;

export type RequeuePreview = Readonly<{
  /** Counted up to a limit, and only for a while. */
  matched: number;
  isMore: boolean;
  /** Matching jobs whose dedupe key is taken. */
  keyTaken: number;
  sample: readonly DeadSample[];
}>;

export const isUnfinished = sql`status IN ('pending', 'running', 'failed')`;

/** The conditions on the dead letter `t` that an index covers. */
export function scopeOf({ queue, fingerprint, jobIds }: DeadFilter): Sql {
  const isNamed = jobIds === null ? sql`t.resolution IS NULL` : sql`t.job_id = ANY(${jobIds}::uuid[])`;
  const hasCause = fingerprint === null ? sql`true` : sql`t.fingerprint = ${fingerprint}`;
  return sql`t.status = 'dead_letter' AND ${hasCause} AND ${isNamed} AND (${queue}::text IS NULL OR t.queue = ${queue})`;
}

/** The conditions that are checked on each of them. */
export function restOf({ error, createdFrom, createdTo }: DeadFilter): Sql {
  return sql`(
    (${error}::text IS NULL OR starts_with(t.error_message, ${error}))
    AND (${createdFrom}::timestamptz IS NULL OR t.created_at >= ${createdFrom})
    AND (${createdTo}::timestamptz IS NULL OR t.created_at < ${createdTo})) IS TRUE`;
}

/** The job that has the dedupe key of `t`. As a scalar: with EXISTS the planner may read all keys in use first. */
const keyHolder = sql`(
    SELECT h.job_id FROM jobs.job_queue h
    WHERE h.queue = t.queue AND h.dedupe_key = t.dedupe_key AND h.${isUnfinished}
    LIMIT 1)`;

/** Rows per statement, and when to stop. */
export type Search = Readonly<{ stepRows?: number; until?: AbortSignal }>;

/** A search without an index answers with what it has found by then. */
const searchWithinMs = 10_000;

type Match = Readonly<{ job_id: string; holder: string | null }>;
type ScannedRow = Match & Readonly<{ is_match: boolean; is_end: boolean }>;

/**
 * Scans dead letters, oldest first, and passes matching ones to `take` until it has enough; returns whether all were
 * seen. No index covers errors and times, and there may be millions: each statement reads a limited number of rows,
 * and the search stops after a while.
 */
async function searchDead(
  db: Queryable,
  { filter, stepRows = 5000, until = AbortSignal.timeout(searchWithinMs) }: Search & { filter: DeadFilter },
  take: (found: readonly Match[]) => 'enough' | 'more',
): Promise<boolean> {
  for (let after: string | null = null; ;) {
    const rows: readonly ScannedRow[] = await db.query<ScannedRow>(sql`
      WITH scanned AS MATERIALIZED (
        SELECT t.job_id, t.queue, t.dedupe_key, ${restOf(filter)} AS is_match
        FROM jobs.job_queue t
        WHERE ${scopeOf(filter)} AND (${after}::uuid IS NULL OR t.job_id > ${after})
        ORDER BY t.job_id
        LIMIT ${stepRows}
      ), t AS (
        SELECT *, row_number() OVER (ORDER BY job_id) = ${stepRows} AS is_end FROM scanned
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
  search: Search = {},
): Promise<FoundDead> {
  const jobIds: string[] = [];
  const keyTaken: SkippedJob[] = [];
  const isAll = await searchDead(db, { ...search, filter }, (found) => {
    for (const { job_id: jobId, holder } of found)
      if (holder === null) jobIds.push(jobId);
      else if (keyTaken.length < limit) keyTaken.push({ jobId, why: 'key_taken', holder });
    return jobIds.length >= limit ? 'enough' : 'more';
  });
  return { jobIds: jobIds.slice(0, limit), keyTaken, isAll };
}

const countedUpTo = 10_000;
const sampleSize = 10;
export const shownErrorLength = 500;

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
  search: Search = {},
): Promise<RequeuePreview> {
  const first: string[] = [];
  let matched = 0;
  let keyTaken = 0;
  const isAll = await searchDead(db, { ...search, filter }, (found) => {
    const counted = found.slice(0, countedUpTo - matched);
    first.push(...counted.slice(0, sampleSize - first.length).map((row) => row.job_id));
    keyTaken += counted.filter((row) => row.holder !== null).length;
    matched += found.length;
    return matched > countedUpTo ? 'enough' : 'more';
  });
  const sample = await db.query<SampleRow>(sql`
    SELECT t.job_id, t.queue, left(t.error_message, ${shownErrorLength + longestMatch}) AS error, t.created_at, t.completed_at
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
