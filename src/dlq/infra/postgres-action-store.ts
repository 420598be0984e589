import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { leaseIsOver } from '../../platform/postgres/work.ts';
import type { ActionStore, PersonAction } from '../usecase/ports.ts';
import { moveBack } from './messages-table.ts';

/**
 * What a person does to a message. Each guards status and lease in its WHERE and bumps the epoch, so that a
 * worker that still thinks it holds the message can settle nothing afterwards.
 */
export function createPostgresActionStore(db: Database): ActionStore {
  return {
    markDead: (action) =>
      db.transaction(async (tx) => {
        const before = await lockLive(tx, action.id, isResting);
        if (before === undefined) return false;
        await tx.query(sql`
          UPDATE dlq.dlq_messages t SET status = 'DEAD', ${letGo} WHERE t.id = ${action.id}`);
        await note(tx, action, { event: 'marked_dead', from: before.status, to: 'DEAD' });
        return true;
      }),

    reopen: (action) =>
      db.transaction(async (tx) => {
        const isReopenable = sql`(t.status IN ('DEAD', 'RESOLVED')
          OR (t.status = 'PENDING' AND t.retry_count >= t.max_retries))`;
        let before = await lockLive(tx, action.id, isReopenable);
        if (before === undefined) {
          await moveBack(tx, [action.id]);
          before = await lockLive(tx, action.id, isReopenable);
        }
        if (before === undefined) return false;
        await tx.query(sql`
          UPDATE dlq.dlq_messages t SET status = 'PENDING', retry_count = 0, resolution = NULL, ${letGo}
          WHERE t.id = ${action.id}`);
        await note(tx, action, { event: 'reopened', from: before.status, to: 'PENDING' });
        return true;
      }),

    remove: (action) =>
      db.transaction(async (tx) => {
        const before = await lockLive(tx, action.id, sql`(t.status <> 'RETRYING' OR ${leaseIsOver})`);
        if (before === undefined) return false;
        await note(tx, action, { event: 'deleted', from: before.status, to: null });
        await tx.query(sql`
          WITH removed AS (
            DELETE FROM dlq.dlq_messages WHERE id = ${action.id}
            RETURNING id, source_topic_id, source_partition, source_offset
          )
          INSERT INTO dlq.arrivals (topic_id, partition, "offset", message_id, kind)
          SELECT source_topic_id, source_partition, source_offset, id, 'deleted'
          FROM removed
          WHERE source_topic_id IS NOT NULL
          ON CONFLICT DO NOTHING`);
        return true;
      }),
  };
}

const isResting: Sql = sql`(t.status = 'PENDING' OR (t.status = 'RETRYING' AND ${leaseIsOver}))`;

const letGo: Sql = sql`
  lease_owner = NULL, lease_until = NULL, lease_lost = false, lease_epoch = nextval('platform.lease_epochs')`;

async function lockLive(tx: Queryable, id: string, guard: Sql): Promise<{ status: string } | undefined> {
  const rows = await tx.query<{ status: string }>(sql`
    SELECT t.status FROM dlq.dlq_messages t WHERE t.id = ${id} AND ${guard} FOR UPDATE`);
  return rows[0];
}

async function note(
  tx: Queryable,
  { id, actor, reason }: PersonAction,
  change: Readonly<{ event: string; from: string; to: string | null }>,
): Promise<void> {
  await tx.query(sql`
    INSERT INTO dlq.message_history
      (message_id, event, actor, reason, status_from, status_to, retry_count, attempt_no, lease_epoch)
    SELECT id, ${change.event}, ${actor}, ${reason}, ${change.from}, ${change.to}, retry_count, attempt_no, lease_epoch
    FROM dlq.dlq_messages WHERE id = ${id}`);
}
