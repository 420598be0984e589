import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { DeadGroup, DeadGroups, JobFilter } from '../usecase/reading-ports.ts';
import { allOf, conditionsOf } from './job-conditions.ts';

/** The newest dead letters, which are those that people come for; a million of them cost as much. */
const countedLimit = 20_000;
const groupLimit = 50;
/** Errors that differ only behind it are one group, and a group can be asked for by its text as it is. */
const errorLength = 200;

type GroupRow = Readonly<{
  queue: string | null;
  error: string | null;
  count: bigint;
  last_at: Date | null;
  is_partial: boolean;
}>;

/** Always one row at least, which says whether all were counted. */
export async function selectDeadGroups(db: Queryable, filter: JobFilter): Promise<DeadGroups> {
  const { scope, rest } = conditionsOf(filter);
  const rows = await db.query<GroupRow>(sql`
    WITH looked AS MATERIALIZED (
      SELECT t.queue, left(t.error_message, ${errorLength}) AS error, t.completed_at, ${allOf(rest)} AS is_match
      FROM jobs.job_queue t WHERE ${scope}
      ORDER BY t.job_id DESC
      LIMIT ${countedLimit + 1}
    ), grouped AS (
      SELECT queue, error, count(*) AS count, max(completed_at) AS last_at
      FROM looked WHERE is_match
      GROUP BY queue, error
      ORDER BY count DESC, queue, error
      LIMIT ${groupLimit}
    )
    SELECT grouped.queue, grouped.error, grouped.count, grouped.last_at, whole.is_partial
    FROM (SELECT count(*) > ${countedLimit} AS is_partial FROM looked) AS whole
    LEFT JOIN grouped ON true
    ORDER BY grouped.count DESC, grouped.queue, grouped.error`);
  return { groups: rows.flatMap(groupsOf), isPartial: rows[0]?.is_partial ?? false };
}

function groupsOf({ queue, error, count, last_at: lastAt }: GroupRow): readonly DeadGroup[] {
  return queue === null ? [] : [{ queue, error, count: Number(count), lastAt }];
}
