import type { Queryable } from '../postgres/database.ts';
import { sql, type Sql } from '../postgres/sql.ts';

/**
 * Transitions that need attention write a row to `platform.notify_events` in their own transaction: an event exists if
 * and only if its transition was committed. What writes it is either a CTE of the statement of the transition, or a
 * statement beside it. `notify` groups the events and sends them to people.
 */
export type NotifyColumns = Readonly<{
  slice: Sql;
  kind: Sql;
  /** What events are grouped by: a topic, a queue, a destination, a workflow. */
  subject: Sql;
  itemId: Sql;
  summary: Sql;
}>;

/** More than is shown, so that a protected part at the end of what is shown is whole when it is looked for. */
const maxSummary = 1500;

/** A CTE with a leading comma, which writes an event for each row of `from` that matches `where`. */
export function notifyEvents(
  { slice, kind, subject, itemId, summary }: NotifyColumns,
  { from, where }: Readonly<{ from: Sql; where: Sql }>,
): Sql {
  return sql`, notified AS (
    INSERT INTO platform.notify_events (slice, kind, subject, item_id, summary)
    SELECT ${slice}, ${kind}, ${subject}, ${itemId}::text, left(COALESCE(${summary}, ''), ${maxSummary})
    FROM ${from} WHERE ${where}
  )`;
}

export async function addNotifyEvent(
  tx: Queryable,
  event: Readonly<{ slice: string; kind: string; subject: string; itemId: string; summary: string }>,
): Promise<void> {
  await tx.query(sql`
    INSERT INTO platform.notify_events (slice, kind, subject, item_id, summary)
    VALUES (${event.slice}, ${event.kind}, ${event.subject}, ${event.itemId}, left(${event.summary}, ${maxSummary}))`);
}
