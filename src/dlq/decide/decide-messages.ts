import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { unnestRows } from '../../platform/postgres/unnest-rows.ts';
import type { Decision } from '../domain/redrive-kind.ts';
import { endLease } from './act-on-message.ts';

/** One decision about many messages. */
export type BulkDecision = Readonly<{
  kind: Decision;
  /** With the epoch that they must still have. */
  messages: readonly Readonly<{ id: string; epoch: bigint }>[];
  actor: string;
  reason: string;
  detail: string;
}>;

/**
 * Applies the decision in the caller's transaction, with an entry in each message's history. Returns the ids of the
 * messages that it was applied to: not those that changed since, whose status does not allow it, or that another
 * transaction has locked.
 */
export async function decideMessages(
  tx: Queryable,
  { kind, messages, actor, reason, detail }: BulkDecision,
): Promise<ReadonlySet<string>> {
  const { guard, event, becomes } = rules[kind];
  const asked = unnestRows(sql`asked`, messages, [
    [sql`id`, sql`uuid[]`, ({ id }) => id],
    [sql`epoch`, sql`bigint[]`, ({ epoch }) => epoch],
  ]);
  const rows = await tx.query<{ id: string }>(sql`
    WITH picked AS MATERIALIZED (
      SELECT t.id, t.status
      FROM ${asked} JOIN dlq.dlq_messages t ON t.id = asked.id AND t.lease_epoch = asked.epoch
      WHERE ${guard}
      FOR UPDATE OF t SKIP LOCKED
    ), ${changeOf(kind)}, noted AS (
      INSERT INTO dlq.message_history
        (message_id, event, actor, reason, status_from, status_to, retry_count, attempt_no, lease_epoch, detail,
         original_topic)
      SELECT id, ${event}, ${actor}, ${reason}, was, ${becomes}, retry_count, attempt_no, lease_epoch, ${detail},
             original_topic
      FROM changed
    )
    SELECT id FROM changed`);
  return new Set(rows.map(({ id }) => id));
}

type Rule = Readonly<{ guard: Sql; event: string; becomes: string | null }>;

const rules: Readonly<Record<Decision, Rule>> = {
  reopen: {
    guard: sql`(t.status IN ('DEAD', 'RESOLVED') OR (t.status = 'PENDING' AND t.retry_count >= t.max_retries))`,
    event: 'reopened',
    becomes: 'PENDING',
  },
  dead: { guard: sql`t.status = 'PENDING'`, event: 'marked_dead', becomes: 'DEAD' },
  delete: { guard: sql`t.status <> 'RETRYING'`, event: 'deleted', becomes: null },
};

function changeOf(kind: Decision): Sql {
  const row = sql`t.id, picked.status AS was, t.retry_count, t.attempt_no, t.lease_epoch, t.original_topic`;
  switch (kind) {
    case 'reopen':
      return sql`changed AS (
        UPDATE dlq.dlq_messages t SET status = 'PENDING', retry_count = 0, resolution = NULL, ${endLease}
        FROM picked WHERE t.id = picked.id RETURNING ${row})`;
    case 'dead':
      return sql`changed AS (
        UPDATE dlq.dlq_messages t SET status = 'DEAD', ${endLease}
        FROM picked WHERE t.id = picked.id RETURNING ${row})`;
    case 'delete':
      return sql`changed AS (
        DELETE FROM dlq.dlq_messages t USING picked WHERE t.id = picked.id
        RETURNING ${row}, t.source_topic_id, t.source_partition, t.source_offset
      ), remembered AS (
        INSERT INTO dlq.arrivals (topic_id, partition, "offset", message_id, kind)
        SELECT source_topic_id, source_partition, source_offset, id, 'deleted'
        FROM changed
        WHERE source_topic_id IS NOT NULL
        ON CONFLICT DO NOTHING)`;
  }
}
