import type { Act, ActResult } from '../../kernel/audit/act.ts';
import { recordAct } from './record-act.ts';
import { cleanText } from '../../kernel/text.ts';
import type { Queryable } from '../postgres/database.ts';
import { sql } from '../postgres/sql.ts';

/**
 * Records that the actor has seen an item uncovered: once a minute, unless the reason or the detail is another one. It
 * runs before the item is sent, in the transaction that reads it.
 */
export async function recordReveal(
  tx: Queryable,
  act: Act,
  about: Pick<ActResult, 'names' | 'detail'> & Readonly<{ resource: string }>,
): Promise<void> {
  const { resource, detail = null } = about;
  const actor = cleanText(act.actor.id, 500);
  const reason = act.reason === null ? null : cleanText(act.reason, 4000);
  const known = await tx.query(sql`
    SELECT 1 FROM audit.events e
    WHERE e.resource = ${resource} AND e.actor_id = ${actor} AND e.action = ${act.action}
      AND e.outcome = 'success' AND e.at >= date_trunc('minute', clock_timestamp())
      AND e.reason IS NOT DISTINCT FROM ${reason}::text
      AND e.detail IS NOT DISTINCT FROM ${detail === null ? null : JSON.stringify(detail)}::jsonb
    LIMIT 1`);
  if (known.length === 0) await recordAct(tx, act, about);
}
