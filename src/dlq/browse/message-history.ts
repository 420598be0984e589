import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { Status } from '../domain/message.ts';
import { messageNotFound } from '../stored-message.ts';
import { findHead } from './find-message.ts';

export type HistoryEntry = Readonly<{
  at: Date;
  event: string;
  actor: string;
  reason: string | null;
  statusFrom: Status | null;
  statusTo: Status | null;
  retryCount: number;
  attemptNo: number;
  topic: string | null;
  partition: number | null;
  offset: bigint | null;
  detail: string | null;
  /** That an attempt published, or an edit made; null for the original. */
  version: number | null;
}>;

const maxEntries = 10_000;

/** The history outlives the message: it is there for deleted ones too. */
export async function getHistory(
  db: Queryable,
  id: string,
): Promise<Readonly<{ entries: readonly HistoryEntry[]; isTruncated: boolean }>> {
  const rows = await db.query<HistoryEntry>(sql`
    SELECT at, event, actor, reason, status_from AS "statusFrom", status_to AS "statusTo",
           retry_count AS "retryCount", attempt_no AS "attemptNo", topic, partition, "offset", detail, version
    FROM dlq.message_history
    WHERE message_id = ${id}
    ORDER BY id
    LIMIT ${maxEntries + 1}`);
  if (rows.length === 0 && (await findHead(db, id)) === null) throw messageNotFound(id);
  return { entries: rows.slice(0, maxEntries), isTruncated: rows.length > maxEntries };
}

/** Of an entry without its texts: field names, timestamps and numbers. */
const entryBytes = 300;

/** About how many bytes the history has in a response. */
export async function measureHistory(db: Queryable, id: string): Promise<number> {
  const rows = await db.query<{ bytes: bigint }>(sql`
    SELECT COALESCE(sum(${entryBytes} + octet_length(concat(actor, reason, topic, detail))), 0)::bigint AS bytes
    FROM (
      SELECT actor, reason, topic, detail FROM dlq.message_history
      WHERE message_id = ${id}
      ORDER BY id
      LIMIT ${maxEntries}
    ) AS listed`);
  return Number(rows[0]?.bytes ?? 0n);
}
