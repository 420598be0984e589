import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { allOf, conditionsOf, type Conditions, type JobFilter } from './job-conditions.ts';
import {
  everyText,
  jobColumns,
  jobOf,
  listedTexts,
  type Job,
  type JobRow,
  type ShownTexts,
} from './job-row.ts';

export type ListPage =
  | Readonly<{ by: 'number'; offset: number; pageSize: number }>
  | Readonly<{ by: 'keyset'; after: string | null; pageSize: number }>;

export type Count = Readonly<{ total: number; isEstimate: boolean }>;

export type JobPage = Readonly<{
  jobs: readonly Job[];
  count: Count;
  hasNext: boolean;
  /**
   * The id to continue after: of a list by keyset, and of a list by page number that reached the scan limit; null at
   * the end.
   */
  next: string | null;
}>;

/** Larger totals are estimates: an exact count would cost more than it is worth. */
const exactCountLimit = 10_000;
/** Rows checked against the filter for one page, and for its total. */
const scanLimit = 50_000;
const countScanLimit = 25_000;

/**
 * One page, newest first, with the total. One row more than the page shows whether there is a next page.
 *
 * A page may be short or empty and still have a next one, if the scan limit was reached first. A list by keyset
 * continues from there. A list by page number ends there, and `next` says where a keyset would continue.
 */
export async function listJobs(
  db: Queryable,
  filter: JobFilter,
  page: ListPage,
  shows = everyText,
): Promise<JobPage> {
  const offset = page.by === 'number' ? page.offset : 0;
  const after = page.by === 'keyset' ? page.after : null;
  const { rows, count } = await selectPage(db, filter, { limit: page.pageSize + 1, offset, after, shows });
  const found = rows.filter(isJobRow).map(jobOf);
  const jobs = found.slice(0, page.pageSize);
  if (found.length > page.pageSize) {
    const last = jobs.at(-1)?.jobId ?? null;
    return { jobs, count, hasNext: true, next: page.by === 'keyset' ? last : null };
  }
  const isBeyondEnd = offset > 0 && jobs.length === 0;
  const next = isBeyondEnd ? null : (rows[0]?.scanned_to ?? null);
  return { jobs, count, hasNext: next !== null, next };
}

type Window = Readonly<{ limit: number; offset: number; after: string | null; shows: ShownTexts }>;

/** `scanned_to`: the last row that was checked, if the scan limit was reached; older rows may match too. */
type ListedRow = (JobRow | Readonly<{ job_id: null }>) & Readonly<{ scanned_to: string | null }>;

function isJobRow(row: ListedRow): row is ListedRow & JobRow {
  return row.job_id !== null;
}

/** How many match, exactly or as an estimate. */
export async function countJobs(db: Queryable, filter: JobFilter): Promise<Count> {
  const conditions = conditionsOf(filter);
  return (await countFew(db, conditions)) ?? countByScan(db, conditions);
}

async function selectPage(
  db: Queryable,
  filter: JobFilter,
  window: Window,
): Promise<Readonly<{ rows: readonly ListedRow[]; count: Count }>> {
  const conditions = conditionsOf(filter);
  const few = await countFew(db, conditions);
  const count = few ?? (await countByScan(db, conditions));
  // Skips the query beyond the end; an estimate does not know where the end is.
  if (window.offset > 0 && !count.isEstimate && window.offset >= count.total) return { rows: [], count };
  return { rows: await db.query<ListedRow>(pageStatement(conditions, window, few !== null)), count };
}

/** The columns that conditions read. */
export const filterColumns: Sql = sql`
  t.job_id, t.queue, t.status, t.dedupe_key, t.created_at, t.resolution, t.error_message, t.fingerprint,
  t.created_by, t.claimed_by, t.lease_owner`;

type Counted = Readonly<{ scanned: bigint; found: bigint }>;

/** Null if more than a few jobs can match. */
async function countFew(db: Queryable, { rest, few }: Conditions): Promise<Count | null> {
  if (few === null) return null;
  const [row] = await db.query<Counted>(sql`
    SELECT count(*) AS scanned, count(*) FILTER (WHERE ${allOf(rest)}) AS found FROM (${fewJobs(few)}) AS t`);
  const isFew = row !== undefined && row.scanned <= BigInt(exactCountLimit);
  return isFew ? { total: Number(row.found), isEstimate: false } : null;
}

function fewJobs({ where, orderBy }: NonNullable<Conditions['few']>): Sql {
  return sql`
    SELECT ${filterColumns} FROM jobs.job_queue t WHERE ${where} ORDER BY ${orderBy} LIMIT ${exactCountLimit + 1}`;
}

/**
 * Reads as many rows as a total without a filter needs, and more of them only if the filter has left some out. So a
 * caller who sees nearly everything does not wait longer than one who sees all.
 */
async function countByScan(db: Queryable, { scope, rest }: Conditions): Promise<Count> {
  const scan = (where: Sql, limit: number): Sql => sql`
    SELECT ARRAY[count(*), count(*) FILTER (WHERE ${allOf(rest)})] FROM (
      SELECT ${filterColumns} FROM jobs.job_queue t WHERE ${scope} AND ${where}
      ORDER BY t.job_id DESC LIMIT ${limit}) AS t`;
  const isFurther = sql`t.job_id < (
    SELECT t.job_id FROM jobs.job_queue t WHERE ${scope} ORDER BY t.job_id DESC OFFSET ${exactCountLimit} LIMIT 1)`;
  const [row] = await db.query<Counted>(sql`
    WITH first AS MATERIALIZED (SELECT (${scan(sql`true`, exactCountLimit + 1)}) AS counts)
    SELECT counts[1] + COALESCE(further[1], 0) AS scanned, counts[2] + COALESCE(further[2], 0) AS found
    FROM first CROSS JOIN LATERAL (
      SELECT CASE WHEN counts[1] > ${exactCountLimit} AND counts[2] <= ${exactCountLimit}
                  THEN (${scan(isFurther, countScanLimit - exactCountLimit)}) END AS further
      -- Otherwise it would be read once for each of its two uses.
      OFFSET 0) AS second`);
  const { scanned, found } = { scanned: Number(row?.scanned ?? 0n), found: Number(row?.found ?? 0n) };
  const isAll = scanned <= (rest.length === 0 ? exactCountLimit : countScanLimit);
  if (isAll && found <= exactCountLimit) return { total: found, isEstimate: false };
  return { total: Math.max(await estimate(db, sql`${scope} AND ${allOf(rest)}`), found), isEstimate: true };
}

type Plan = readonly Readonly<{ Plan: Readonly<{ 'Plan Rows': number }> }>[];

/** The planner's estimate, from its statistics alone. */
async function estimate(db: Queryable, conditions: Sql): Promise<number> {
  const rows = await db.query<{ 'QUERY PLAN': Plan }>(sql`
    EXPLAIN (FORMAT JSON) SELECT 1 FROM jobs.job_queue t WHERE ${conditions}`);
  return rows[0]?.['QUERY PLAN'][0]?.Plan['Plan Rows'] ?? 0;
}

/**
 * Always returns a row, so that `scanned_to` is there even if nothing matches. The page and `scanned_to` are read by
 * one statement: between two statements rows may be deleted, and rows behind the end of the scan would be skipped.
 */
function pageStatement({ scope, rest, few }: Conditions, window: Window, isFew: boolean): Sql {
  const { limit, offset, after } = window;
  const isOlder = after === null ? sql`true` : sql`t.job_id < ${after}::uuid`;
  const inOrder = sql`FROM jobs.job_queue t WHERE ${scope} AND ${isOlder} ORDER BY t.job_id DESC`;
  const isBounded = !isFew && rest.length > 0;
  const candidates =
    isFew && few !== null
      ? fewJobs(few)
      : sql`SELECT ${filterColumns} ${inOrder} LIMIT ${isBounded ? scanLimit : null}`;
  const scannedTo = isBounded
    ? sql`SELECT t.job_id ${inOrder} OFFSET ${scanLimit - 1} LIMIT 1`
    : sql`NULL::uuid`;
  return sql`
    WITH page AS MATERIALIZED (
      SELECT t.job_id FROM (${candidates}) AS t
      WHERE ${allOf(rest)} AND ${isOlder}
      ORDER BY t.job_id DESC
      LIMIT ${limit} OFFSET ${offset}
    )
    SELECT ${jobColumns}, ${listedTexts(window.shows)}, scan.scanned_to
    FROM (SELECT CASE WHEN (SELECT count(*) FROM page) < ${limit} THEN (${scannedTo}) END AS scanned_to) AS scan
    LEFT JOIN (page JOIN jobs.job_queue t ON t.job_id = page.job_id) ON true
    ORDER BY t.job_id DESC`;
}
