import type { Act, Outcome } from '../../../kernel/audit/act.ts';
import { insertActs } from '../../../platform/audit/record-act.ts';
import type { Queryable } from '../../../platform/postgres/database.ts';
import { sql } from '../../../platform/postgres/sql.ts';

/** A row of the audit log is small, and a part of them would show it to roles that may not see the rest. */
const maxTopics = 100;

/**
 * Adds an event of a redrive to the audit log. The operation is the redrive: everything that happened to it, from the
 * plan to the receipt, has its id. The events name the topics of the plan, of messages and of targets; without them,
 * before the plan or if it has too many, only roles that are not narrowed see an event.
 */
export async function recordRedrive(
  tx: Queryable,
  act: Act,
  event: Readonly<{
    id: string;
    /** How many messages it has; 0 before the plan. */
    items: number;
    outcome?: Outcome;
    detail: Readonly<{ change: string } & Record<string, unknown>>;
  }>,
): Promise<void> {
  const { id, items, outcome = 'success', detail } = event;
  await tx.query(
    insertActs(act, {
      resource: sql`${`dlq/redrives/${id}`}::text`,
      names: {
        topics: sql`(
          SELECT r.topics FROM dlq.redrives r WHERE r.id = ${id} AND cardinality(r.topics) <= ${maxTopics})`,
      },
      outcome,
      operationId: sql`${id}::uuid`,
      items: sql`${items}::int`,
      detail: sql`${JSON.stringify(detail)}::jsonb`,
    }),
  );
}
