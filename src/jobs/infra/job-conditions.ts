import { joinSql, sql, type Sql } from '../../platform/postgres/sql.ts';
import type { JobFilter } from '../usecase/reading-ports.ts';

/**
 * How the jobs `t` of a filter are found. Lists go by id, the newest first, and jobs that go well pay for no index
 * but those that their work needs. So a filter falls apart: `scope` is what an index in the order of the list knows
 * (all jobs, the failed ones, dead letters), and `rest` is asked of each job that the index comes to.
 *
 * Where few jobs can match at all, `few` finds them by an index in another order, and they are sorted. It stands in
 * for the scope.
 */
export type Conditions = Readonly<{
  scope: Sql;
  rest: readonly Sql[];
  few: Readonly<{ where: Sql; orderBy: Sql }> | null;
}>;

const and = sql` AND `;

/** The time in an id is that of the creation, but for what lies between the reading of the one and of the other. */
const idSlackMs = 60_000;

export function conditionsOf(filter: JobFilter): Conditions {
  const { queue, status, dedupeKey, createdFrom, createdTo, resolution, error } = filter;
  const scope = [sql`true`];
  const rest: Sql[] = [];
  const isUnresolved = status === 'dead_letter' && resolution === 'unresolved';
  if (status === 'failed' || status === 'dead_letter') scope.push(sql`t.status = ${status}`);
  else if (status !== undefined) rest.push(sql`t.status = ${status}`);
  if (isUnresolved) scope.push(sql`t.resolution IS NULL`);
  else if (resolution === 'unresolved') rest.push(sql`t.resolution IS NULL`);
  else if (resolution !== undefined && resolution !== 'any') rest.push(sql`t.resolution = ${resolution}`);
  if (queue !== undefined) (isUnresolved ? scope : rest).push(sql`t.queue = ${queue}`);
  if (dedupeKey !== undefined) rest.push(sql`t.dedupe_key = ${dedupeKey}`);
  if (error !== undefined) rest.push(sql`starts_with(t.error_message, ${error})`);
  if (createdFrom !== undefined) {
    scope.push(sql`t.job_id >= ${firstIdAt(createdFrom.getTime() - idSlackMs)}::uuid`);
    rest.push(sql`t.created_at >= ${createdFrom}`);
  }
  if (createdTo !== undefined) {
    scope.push(sql`t.job_id < ${firstIdAt(createdTo.getTime() + idSlackMs)}::uuid`);
    rest.push(sql`t.created_at < ${createdTo}`);
  }
  return { scope: joinSql(scope, and), rest, few: fewOf(filter) };
}

/** Each in the order of its index, so that the planner takes it and stops at its bound. */
function fewOf({ queue, status, dedupeKey }: JobFilter): Conditions['few'] {
  if (status === undefined || status === 'completed' || status === 'dead_letter') return null;
  const ofQueue = queue === undefined ? sql`true` : sql`t.queue = ${queue}`;
  if (queue !== undefined && dedupeKey !== undefined)
    return {
      where: sql`${ofQueue} AND t.dedupe_key = ${dedupeKey} AND t.status = ${status}`,
      orderBy: sql`t.queue, t.dedupe_key`,
    };
  switch (status) {
    case 'failed':
      return null;
    case 'running':
      return { where: sql`t.status = 'running' AND ${ofQueue}`, orderBy: sql`t.queue` };
    case 'pending':
      return {
        where: sql`t.status IN ('pending', 'failed') AND ${ofQueue}`,
        orderBy: sql`t.queue, t.sort_at, t.job_id`,
      };
  }
}

/** The rest as one condition. */
export function allOf(rest: readonly Sql[]): Sql {
  return joinSql([sql`true`, ...rest], and);
}

/** The least UUID whose first 48 bits are this time, as in version 7. */
function firstIdAt(ms: number): string {
  const time = Math.max(0, Math.floor(ms)).toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-0000-0000-000000000000`;
}
