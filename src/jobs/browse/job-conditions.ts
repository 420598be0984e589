import type { NameFilter, OwnItems } from '../../kernel/access/scope.ts';
import { isVisible } from '../../platform/postgres/is-named.ts';
import { joinSql, sql, type Sql } from '../../platform/postgres/sql.ts';
import type { Status } from '../domain/job.ts';
import { isJobOf } from '../jobs-table.ts';

export const resolutionFilters = ['unresolved', 'cancelled', 'discarded', 'any'] as const;

export type JobFilter = Readonly<{
  queue?: string | undefined;
  status?: Status | undefined;
  dedupeKey?: string | undefined;
  /** Created at or after it. */
  createdFrom?: Date | undefined;
  /** Created before it. */
  createdTo?: Date | undefined;
  /** `unresolved`: neither cancelled nor discarded. */
  resolution?: (typeof resolutionFilters)[number] | undefined;
  /** Prefix of the error message. */
  error?: string | undefined;
  fingerprint?: string | undefined;
  /** The queues that the caller may see; by default all. */
  names?: NameFilter;
  /** Jobs that the caller sees in other queues as well. */
  own?: OwnItems | null;
}>;

/**
 * The WHERE conditions of a filter on the job `t`. Lists are ordered by id, newest first, and no index exists only for
 * lists, because every completed job would pay for it. So a filter is split: an index in list order covers `scope`
 * (all jobs, failed jobs, dead letters), and `rest` is checked on each row that this index yields.
 *
 * If only few jobs can match, `few` replaces the scope: an index in another order finds them, and they are sorted.
 */
export type Conditions = Readonly<{
  scope: Sql;
  rest: readonly Sql[];
  few: Readonly<{ where: Sql; orderBy: Sql }> | null;
}>;

const and = sql` AND `;

/** An id's timestamp and `created_at` are read at slightly different moments. */
const idSlackMs = 60_000;

export function conditionsOf(filter: JobFilter): Conditions {
  const { queue, status, dedupeKey, createdFrom, createdTo, resolution, error, fingerprint } = filter;
  const { names = null, own = null } = filter;
  const scope = [sql`true`];
  const rest: Sql[] = [];
  const isCause = status === 'dead_letter' && fingerprint !== undefined;
  const isUnresolved = status === 'dead_letter' && resolution === 'unresolved' && !isCause;
  if (status === 'failed' || status === 'dead_letter') scope.push(sql`t.status = ${status}`);
  else if (status !== undefined) rest.push(sql`t.status = ${status}`);
  if (fingerprint !== undefined) (isCause ? scope : rest).push(sql`t.fingerprint = ${fingerprint}`);
  if (isUnresolved) scope.push(sql`t.resolution IS NULL`);
  else if (resolution === 'unresolved') rest.push(sql`t.resolution IS NULL`);
  else if (resolution !== undefined && resolution !== 'any') rest.push(sql`t.resolution = ${resolution}`);
  if (queue !== undefined) (isUnresolved ? scope : rest).push(sql`t.queue = ${queue}`);
  if (names !== null) rest.push(isVisible({ names, own }, { name: sql`t.queue`, isOf: isJobOf }));
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

/** Each in the order of its index, so that the planner uses it and stops at the limit. */
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

export function allOf(rest: readonly Sql[]): Sql {
  return joinSql([sql`true`, ...rest], and);
}

/** The smallest version 7 UUID with this timestamp. */
function firstIdAt(ms: number): string {
  const time = Math.max(0, Math.floor(ms)).toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-0000-0000-000000000000`;
}
