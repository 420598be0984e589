import { cleanText } from '../../kernel/text.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { unnestRows } from '../../platform/postgres/unnest-rows.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { outcomesBefore } from '../domain/redrive-item.ts';
import type { ReturnedAttempt } from '../domain/arrivals.ts';

/**
 * Marks the redrive items whose attempts came back as dead letters, whatever became of the messages. The caller has
 * locked the messages; the lock on the redrives orders this before or after a receipt, which does not change any more:
 * behind it only `came_back_at` is set. Ingest never updates a redrive. An item that waits has no attempt.
 */
export async function markReturned(tx: Queryable, returned: readonly ReturnedAttempt[]): Promise<void> {
  if (returned.length === 0) return;
  const ids = [...new Set(returned.map(({ messageId }) => messageId))];
  const concerned = await tx.query<{ id: string }>(sql`
    SELECT DISTINCT i.redrive_id AS id FROM dlq.redrive_items i WHERE i.message_id = ANY(${ids}::uuid[])`);
  if (concerned.length === 0) return;
  const open = await tx.query<{ id: string }>(sql`
    SELECT r.id FROM dlq.redrives r
    WHERE r.id = ANY(${concerned.map(({ id }) => id)}::uuid[]) AND r.receipt IS NULL
    ORDER BY r.id FOR KEY SHARE`);
  const rows = unnestRows(sql`returned`, returned, [
    [sql`id`, sql`uuid[]`, ({ messageId }) => messageId],
    [sql`attempt`, sql`int[]`, ({ attempt }) => attempt],
    [sql`topic`, sql`text[]`, ({ topic }) => topic],
    [sql`is_same`, sql`boolean[]`, ({ isSame }) => isSame],
    [sql`error`, sql`text[]`, ({ letter }) => cleanText(letter.errorMessage, 1000)],
  ]);
  const isOpen = sql`(i.redrive_id = ANY(${open.map(({ id }) => id)}::uuid[]))`;
  await tx.query(sql`
    UPDATE dlq.redrive_items i
    SET came_back_at = clock_timestamp(),
        outcome = CASE WHEN ${isOpen} THEN 'came_back' ELSE i.outcome END,
        reason = CASE WHEN ${isOpen} THEN returned.error ELSE i.reason END,
        settled_at = COALESCE(i.settled_at, clock_timestamp())
    FROM ${rows}
    WHERE i.message_id = returned.id AND i.attempt_no = COALESCE(returned.attempt, i.attempt_no)
      AND (returned.is_same OR i.target = returned.topic)
      AND i.came_back_at IS NULL
      AND (i.outcome IS NULL OR i.outcome = ANY(${mayComeBack}::text[]))`);
}

const mayComeBack = outcomesBefore('came_back').filter((outcome) => outcome !== null);
