import type { Act, ActResult, Outcome } from '../../kernel/audit/act.ts';
import type { Dimension } from '../../kernel/access/scope.ts';
import { cleanText } from '../../kernel/text.ts';
import type { Queryable } from '../postgres/database.ts';
import { sql, type Sql } from '../postgres/sql.ts';

/**
 * The audit log: one row in `audit.events` for every act of a person, of a key, of a policy or of the system.
 *
 *   await db.transaction(async (tx) => {
 *     await tx.query(…the change…);
 *     await recordAct(tx, act, { resource: `jobs/jobs/${id}`, names: { queues: [queue] } });
 *   });
 *
 * `act` says who acts, by which permission and why: `actOf(request)` makes it, and actions get it as `by.act`. Without a
 * request the caller makes it. `names` decides which narrowed roles see the row; a row
 * without names is seen by roles that are not narrowed. `detail` is a small JSON object without bytes of payloads.
 *
 * It must run in the transaction of the change: no row, no change. A trigger sets number and time, and refuses every later change.
 */
export async function recordAct(tx: Queryable, act: Act, result: ActResult): Promise<void> {
  const { resource, names = {}, outcome, operationId = null, items, detail = null } = result;
  const list = (dimension: Dimension): Sql => sql`${names[dimension] ?? null}::text[]`;
  await tx.query(
    insertActs(act, {
      resource: sql`${cleanText(resource, 500)}::text`,
      names: {
        topics: list('topics'),
        queues: list('queues'),
        destinations: list('destinations'),
        workflows: list('workflows'),
      },
      outcome,
      operationId: sql`${operationId}::uuid`,
      items: sql`${items ?? 1}::int`,
      detail: sql`${detail === null ? null : JSON.stringify(detail)}::jsonb`,
    }),
  );
}

/** What is left out is NULL, or one item with success. */
export type ActColumns = Readonly<{
  /** An expression over the rows of `from`. */
  resource: Sql;
  names?: Readonly<Partial<Record<Dimension, Sql>>>;
  outcome?: Outcome | Sql | undefined;
  operationId?: Sql;
  items?: Sql;
  detail?: Sql;
  /** Where the rows come from; without it there is one. */
  from?: Sql;
}>;

const none = sql`NULL`;

/**
 * The INSERT alone, for a statement that records in the transaction of its own change:
 *
 *     WITH changed AS (UPDATE … RETURNING …), recorded AS (${insertActs(act, { resource, from: sql`changed` })})
 *     SELECT … FROM changed
 */
export function insertActs(act: Act, columns: ActColumns): Sql {
  const { actor, action, reason, request } = act;
  const {
    resource,
    names = {},
    outcome = 'success',
    operationId = none,
    items = sql`1`,
    detail = none,
  } = columns;
  return sql`
    INSERT INTO audit.events
      (kept, actor_type, actor_id, actor_name, roles, action, outcome, reason, resource, topics, queues, destinations,
       workflows, operation_id, item_count, detail, request_id, trace_id, address, agent)
    SELECT audit.keep_of(${action}), ${actor.type}, ${cleanText(actor.id, 500)}, ${cleanText(actor.name, 255)},
           ${actor.roles}::text[], ${action}, ${outcome}, ${cleaned(reason, 4000)}, ${resource},
           ${names.topics ?? none}::text[], ${names.queues ?? none}::text[], ${names.destinations ?? none}::text[],
           ${names.workflows ?? none}::text[], ${operationId}::uuid, ${items}, ${detail}::jsonb, ${request.id},
           ${request.traceId}, ${request.address}, ${cleaned(request.agent, 300)}
    ${columns.from === undefined ? sql`` : sql`FROM ${columns.from}`}`;
}

function cleaned(text: string | null, maxBytes: number): string | null {
  return text === null ? null : cleanText(text, maxBytes);
}
