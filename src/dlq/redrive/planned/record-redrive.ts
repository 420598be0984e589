import type { Act, Outcome } from '../../../kernel/audit/act.ts';
import { recordAct } from '../../../platform/audit/record-act.ts';
import type { Queryable } from '../../../platform/postgres/database.ts';

/**
 * Adds an event of a redrive to the audit log. The operation is the redrive: everything that happened to it, from the
 * plan to the receipt, has its id. The events name no topics, because the messages of one redrive may have many: roles
 * that are not narrowed see them.
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
  await recordAct(tx, act, { resource: `dlq/redrives/${id}`, operationId: id, items, outcome, detail });
}
