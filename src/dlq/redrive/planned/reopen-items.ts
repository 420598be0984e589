import type { Queryable } from '../../../platform/postgres/database.ts';
import { sql, type Sql } from '../../../platform/postgres/sql.ts';
import { redriveDetail } from '../../domain/redrive.ts';
import { isDue } from '../../messages-table.ts';
import { isSelectable } from './plan-scope.ts';
import type { LeasedRedrive } from './redrives-table.ts';

/**
 * The frozen epoch: a message that anybody has touched since the plan is not claimed. The epochs are looked up in a
 * value, not in the items: right after a plan there are no statistics about those, and a join may read all of them for
 * each message.
 */
export function isPlanned(messages: readonly Readonly<{ messageId: string; plannedEpoch: bigint }>[]): Sql {
  const ids = messages.map(({ messageId }) => messageId);
  const epochs = messages.map(({ messageId, plannedEpoch }) => [messageId, String(plannedEpoch)] as const);
  return sql`t.id = ANY(${ids}::uuid[])
    AND t.lease_epoch = (${JSON.stringify(Object.fromEntries(epochs))}::jsonb->>t.id::text)::bigint`;
}

/**
 * Gives a new budget to messages that are DEAD or have no attempt left, in the transaction that claims them. They keep
 * the epoch that the plan saw; the claim takes a new one. A message that another transaction has locked is left to the
 * claim, which does not find it due.
 */
export async function reopenItems(
  tx: Queryable,
  redrive: LeasedRedrive,
  messages: Parameters<typeof isPlanned>[0],
): Promise<void> {
  const { id, actor, reason } = redrive;
  await tx.query(sql`
    WITH picked AS MATERIALIZED (
      SELECT t.id, t.status FROM dlq.dlq_messages t
      WHERE ${isPlanned(messages)} AND ${isSelectable(redrive)} AND NOT (${isDue})
      FOR UPDATE SKIP LOCKED
    ), reopened AS (
      UPDATE dlq.dlq_messages t SET status = 'PENDING', retry_count = 0, lease_lost = false
      FROM picked
      WHERE t.id = picked.id
      RETURNING t.id, picked.status AS was, t.retry_count, t.attempt_no, t.lease_epoch, t.original_topic
    )
    INSERT INTO dlq.message_history
      (message_id, event, actor, reason, status_from, status_to, retry_count, attempt_no, lease_epoch, detail,
       original_topic)
    SELECT id, 'reopened', ${actor}, ${reason}, was, 'PENDING', retry_count, attempt_no, lease_epoch, ${redriveDetail(id)},
           original_topic
    FROM reopened`);
}
