import { longestMatch } from '../../kernel/protect/protection.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { allOf, conditionsOf, type JobFilter } from './job-conditions.ts';

/**
 * Dead letters of one queue with the same cause. Those without a fingerprint are grouped by the beginning of their
 * errors: cancelled ones, and those from before there were fingerprints.
 */
export type DeadGroup = Readonly<{
  queue: string;
  fingerprint: string | null;
  /** The beginning of the newest error, longer than it is shown; null if the jobs have none. */
  error: string | null;
  count: number;
  /** When the newest of them died; null if unknown. */
  lastAt: Date | null;
}>;

/** Largest first. `isPartial`: only the newest dead letters were counted. */
export type DeadGroups = Readonly<{ groups: readonly DeadGroup[]; isPartial: boolean }>;

const countedLimit = 20_000;
const groupLimit = 50;
/** So much of an error is shown, and by so much of it causes without a fingerprint are told apart. */
export const groupErrorLength = 200;

type GroupRow = Readonly<{
  queue: string | null;
  fingerprint: string | null;
  error: string | null;
  count: bigint;
  last_at: Date | null;
  is_partial: boolean;
}>;

/** The statement always returns a row, which says whether all dead letters were counted. */
export async function groupDeadJobs(db: Queryable, filter: JobFilter): Promise<DeadGroups> {
  const { scope, rest } = conditionsOf(filter);
  const rows = await db.query<GroupRow>(sql`
    WITH scanned AS MATERIALIZED (
      SELECT t.job_id, t.queue, t.fingerprint, left(t.error_message, ${groupErrorLength}) AS error, t.completed_at,
             ${allOf(rest)} AS is_match
      FROM jobs.job_queue t WHERE ${scope}
      ORDER BY t.job_id DESC
      LIMIT ${countedLimit + 1}
    ), grouped AS (
      SELECT queue, fingerprint, (array_agg(job_id ORDER BY job_id DESC))[1] AS newest,
             (array_agg(error ORDER BY job_id DESC))[1] AS error, count(*) AS count, max(completed_at) AS last_at
      FROM scanned WHERE is_match
      GROUP BY queue, fingerprint, CASE WHEN fingerprint IS NULL THEN error END
      ORDER BY count DESC, queue, error, fingerprint
      LIMIT ${groupLimit}
    )
    SELECT grouped.queue, grouped.fingerprint, left(t.error_message, ${groupErrorLength + longestMatch}) AS error,
           grouped.count, grouped.last_at, whole.is_partial
    FROM (SELECT count(*) > ${countedLimit} AS is_partial FROM scanned) AS whole
    LEFT JOIN (grouped JOIN jobs.job_queue t ON t.job_id = grouped.newest) ON true
    ORDER BY grouped.count DESC, grouped.queue, grouped.error, grouped.fingerprint`);
  return { groups: rows.flatMap(groupsOf), isPartial: rows[0]?.is_partial ?? false };
}

function groupsOf({ queue, fingerprint, error, count, last_at: lastAt }: GroupRow): readonly DeadGroup[] {
  return queue === null ? [] : [{ queue, fingerprint, error, count: Number(count), lastAt }];
}
