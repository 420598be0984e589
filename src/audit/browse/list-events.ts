import type { NameFilters } from '../../kernel/access/scope.ts';
import type { Outcome } from '../../kernel/audit/act.ts';
import type { PageRequest } from '../../kernel/page.ts';
import type { Listed } from '../../platform/http/list-route.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { areAllNamed } from '../../platform/postgres/is-named.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import type { AuditEvent } from '../chain.ts';
import { eventColumns } from '../events-table.ts';

export type EventFilter = Readonly<{
  actor?: string | undefined;
  action?: string | undefined;
  outcome?: Outcome | undefined;
  resource?: string | undefined;
  operation?: string | undefined;
  since?: Date | undefined;
  until?: Date | undefined;
  /** Whose names the caller may see. An event needs all its names in scope. */
  scope?: NameFilters | undefined;
  /** What people did, and not what was refused. */
  withoutDenials?: boolean | undefined;
}>;

/** More than these are not counted. */
const maxCounted = 10_000;

/** The newest first. */
export async function listEvents(
  db: Queryable,
  filter: EventFilter,
  page: PageRequest,
): Promise<Listed<AuditEvent>> {
  const matches = whereOf(filter);
  const after = page.by === 'keyset' ? page.after : null;
  const isAfter = after === null ? sql`true` : sql`e.seq < ${after[0]}::bigint`;
  const [counted] = await db.query<{ count: number }>(sql`
    SELECT count(*)::int AS count FROM (
      SELECT 1 FROM audit.events e WHERE ${matches} LIMIT ${maxCounted + 1}) AS matching`);
  const rows = await db.query<AuditEvent>(sql`
    SELECT ${eventColumns} FROM audit.events e WHERE ${isAfter} AND ${matches}
    ORDER BY e.seq DESC LIMIT ${page.pageSize + 1} OFFSET ${page.by === 'number' ? page.offset : 0}`);
  const total = counted?.count ?? 0;
  return {
    items: rows.slice(0, page.pageSize),
    count: { total: Math.min(total, maxCounted), isEstimate: total > maxCounted },
    hasNext: rows.length > page.pageSize,
  };
}

const nameColumns = {
  topics: sql`e.topics`,
  queues: sql`e.queues`,
  destinations: sql`e.destinations`,
  workflows: sql`e.workflows`,
};

function whereOf(filter: EventFilter): Sql {
  const { actor, action, outcome, resource, operation, since, until, scope, withoutDenials = false } = filter;
  const parts = [
    actor === undefined ? sql`true` : sql`e.actor_id = ${actor}`,
    action === undefined ? sql`true` : sql`e.action = ${action}`,
    outcome === undefined ? sql`true` : sql`e.outcome = ${outcome}`,
    resource === undefined ? sql`true` : sql`e.resource = ${resource}`,
    operation === undefined ? sql`true` : sql`e.operation_id = ${operation}::uuid`,
    since === undefined ? sql`true` : sql`e.at >= ${since}`,
    until === undefined ? sql`true` : sql`e.at < ${until}`,
    scope === undefined ? sql`true` : areAllNamed(nameColumns, scope),
    withoutDenials ? sql`e.outcome <> 'denied'` : sql`true`,
  ];
  return parts.reduce((all, part) => sql`${all} AND ${part}`);
}
