import type { Act } from '../../../kernel/audit/act.ts';
import { AppError } from '../../../kernel/errors.ts';
import { entityTagOf, staleTag } from '../../../platform/http/entity-tag.ts';
import type { Database } from '../../../platform/postgres/database.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import { hasEnded, statesBefore, type RedriveState } from '../../domain/redrive.ts';
import type { RedriveKind } from '../../domain/redrive-kind.ts';
import { recordRedrive } from './record-redrive.ts';
import { redriveNotFound, type RedriveOptions } from './redrives-table.ts';

export type RedrivePatch = Readonly<{
  id: string;
  /** Of `If-Match`. */
  tags: readonly string[];
  options: Partial<Pick<RedriveOptions, 'rate_per_second' | 'canary'>>;
  actor: string;
  reason: string | null;
  act: Act;
}>;

/**
 * Changes the options of a redrive that has not ended, and voids its approval: that was for what the approver has seen. A running one reads them before each batch, so they are effective
 * within a second, also in another process.
 */
export async function patchRedrive(
  db: Database,
  { id, tags, options, actor, reason, act }: RedrivePatch,
): Promise<void> {
  await db.transaction(async (tx) => {
    const [row] = await tx.query<Found>(sql`
      SELECT kind, state, revision, COALESCE((counts->>'selected')::int, 0) AS selected
      FROM dlq.redrives WHERE id = ${id} FOR NO KEY UPDATE`);
    if (row === undefined) throw redriveNotFound(id);
    const tag = entityTagOf(row.revision);
    if (!tags.includes(tag)) throw staleTag('dlq', 'redrive', tag);
    const refusal = refusalOf(row, options);
    if (refusal !== null) throw new AppError('SYS_DLQ_CONFLICT', 'conflict', refusal);
    await tx.query(sql`
      UPDATE dlq.redrives
      SET editors = array_append(array_remove(editors, ${actor}), ${actor}),
          approval = CASE WHEN state = 'awaiting_approval' THEN NULL ELSE approval END, options = options || ${JSON.stringify(options)}::jsonb, revision = revision + 1,
          state_reason = ${`change by ${actor}${reason === null ? '' : `: ${reason}`}`}
      WHERE id = ${id}`);
    await recordRedrive(tx, act, { id, items: row.selected, detail: { change: 'changed', options } });
  });
}

type Found = Readonly<{ kind: RedriveKind; state: RedriveState; revision: bigint; selected: number }>;

/** The stages of a canary are drawn when it starts. */
function refusalOf({ kind, state }: Found, { canary }: RedrivePatch['options']): string | null {
  if (hasEnded(state)) return `redrive is ${state}: it cannot be changed`;
  if (canary === undefined) return null;
  if (kind !== 'retry') return `redrive is of the kind ${kind}: it has no canary`;
  const isStarted = state !== 'planning' && !statesBefore('start').includes(state);
  return isStarted ? `redrive is ${state}: its canary can be changed only before the start` : null;
}
