import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import type { Count, JobFilter, Listed, ListWindow } from '../usecase/reading-ports.ts';
import { allOf, conditionsOf, type Conditions } from './job-conditions.ts';
import { jobColumns, jobOf, listedTexts, type JobRow } from './job-row.ts';

/** Beyond this a total is an estimate: counting on would cost more than the answer is worth. */
const exactCountLimit = 10_000;
/** For one page, and for its total, no more jobs than these are asked whether they match. */
const lookLimit = 50_000;
const countLookLimit = 25_000;

/** One page, the newest first, and how many there are in all. */
export async function selectJobs(db: Queryable, filter: JobFilter, window: ListWindow): Promise<Listed> {
  const conditions = conditionsOf(filter);
  const few = await countFew(db, conditions);
  const count = few ?? (await countLooking(db, conditions));
  // Beyond the end there is nothing to skip to; an estimate does not know where the end is.
  if (window.offset > 0 && !count.isEstimate && window.offset >= count.total)
    return { jobs: [], lookedTo: null, count };
  const rows = await db.query<ListedRow>(pageOf(conditions, window, few !== null));
  return {
    jobs: rows.filter(isJobRow).map(jobOf),
    lookedTo: rows[0]?.looked_to ?? null,
    count,
  };
}

type ListedRow = (JobRow | Readonly<{ job_id: null }>) & Readonly<{ looked_to: string | null }>;

function isJobRow(row: ListedRow): row is ListedRow & JobRow {
  return row.job_id !== null;
}

/** What conditions are asked of. */
const asked: Sql = sql`t.job_id, t.queue, t.status, t.dedupe_key, t.created_at, t.resolution, t.error_message`;

type Counted = Readonly<{ looked: bigint; found: bigint }>;

/** Null where the jobs that can match are not few. */
async function countFew(db: Queryable, { rest, few }: Conditions): Promise<Count | null> {
  if (few === null) return null;
  const [row] = await db.query<Counted>(sql`
    SELECT count(*) AS looked, count(*) FILTER (WHERE ${allOf(rest)}) AS found FROM (${fewJobs(few)}) AS t`);
  const isFew = row !== undefined && row.looked <= BigInt(exactCountLimit);
  return isFew ? { total: Number(row.found), isEstimate: false } : null;
}

function fewJobs({ where, orderBy }: NonNullable<Conditions['few']>): Sql {
  return sql`
    SELECT ${asked} FROM jobs.job_queue t WHERE ${where} ORDER BY ${orderBy} LIMIT ${exactCountLimit + 1}`;
}

async function countLooking(db: Queryable, { scope, rest }: Conditions): Promise<Count> {
  const limit = rest.length === 0 ? exactCountLimit : countLookLimit;
  const [row] = await db.query<Counted>(sql`
    SELECT count(*) AS looked, count(*) FILTER (WHERE ${allOf(rest)}) AS found
    FROM (SELECT ${asked} FROM jobs.job_queue t WHERE ${scope} ORDER BY t.job_id DESC LIMIT ${limit + 1}) AS t`);
  const found = Number(row?.found ?? 0n);
  if ((row?.looked ?? 0n) <= BigInt(limit)) return { total: found, isEstimate: false };
  return { total: Math.max(await estimate(db, sql`${scope} AND ${allOf(rest)}`), found), isEstimate: true };
}

type Plan = readonly Readonly<{ Plan: Readonly<{ 'Plan Rows': number }> }>[];

/** What the planner thinks: from its statistics, without looking at a row. */
async function estimate(db: Queryable, conditions: Sql): Promise<number> {
  const rows = await db.query<{ 'QUERY PLAN': Plan }>(sql`
    EXPLAIN (FORMAT JSON) SELECT 1 FROM jobs.job_queue t WHERE ${conditions}`);
  return rows[0]?.['QUERY PLAN'][0]?.Plan['Plan Rows'] ?? 0;
}

/**
 * Always has a row, so that `looked_to` is told even where nothing matches. It is read by the same statement as the
 * page: between two, jobs may go, and those behind the end of the look would move into it unseen.
 */
function pageOf({ scope, rest, few }: Conditions, window: ListWindow, isFew: boolean): Sql {
  const { limit, offset, after } = window;
  const isOlder = after === null ? sql`true` : sql`t.job_id < ${after}::uuid`;
  const inOrder = sql`FROM jobs.job_queue t WHERE ${scope} AND ${isOlder} ORDER BY t.job_id DESC`;
  const isBounded = !isFew && rest.length > 0;
  const candidates =
    isFew && few !== null
      ? fewJobs(few)
      : sql`SELECT ${asked} ${inOrder} LIMIT ${isBounded ? lookLimit : null}`;
  const lookedTo = isBounded
    ? sql`SELECT t.job_id ${inOrder} OFFSET ${lookLimit - 1} LIMIT 1`
    : sql`NULL::uuid`;
  return sql`
    WITH page AS MATERIALIZED (
      SELECT t.job_id FROM (${candidates}) AS t
      WHERE ${allOf(rest)} AND ${isOlder}
      ORDER BY t.job_id DESC
      LIMIT ${limit} OFFSET ${offset}
    )
    SELECT ${jobColumns}, ${listedTexts}, look.looked_to
    FROM (SELECT CASE WHEN (SELECT count(*) FROM page) < ${limit} THEN (${lookedTo}) END AS looked_to) AS look
    LEFT JOIN (page JOIN jobs.job_queue t ON t.job_id = page.job_id) ON true
    ORDER BY t.job_id DESC`;
}
