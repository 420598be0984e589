import type { Act } from '../../kernel/audit/act.ts';
import { AppError } from '../../kernel/errors.ts';
import { insertUnknown } from '../../platform/audit/insert-unknown.ts';
import { recordAct } from '../../platform/audit/record-act.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { leaseIsOver } from '../../platform/work/work.ts';
import { isLegalTopic } from '../domain/legal-topic.ts';
import { restoreFromArchive, unscheduled } from '../messages-table.ts';
import { messageNotFound, type FindHead } from '../stored-message.ts';

/**
 * What an operator does to a message: mark it dead, reopen it, route it, delete it. Each checks status and lease under
 * a row lock and takes a new epoch, so that a worker that still believes in its lease can settle nothing afterwards.
 */
export type ActionDeps = Readonly<{
  db: Database;
  findHead: FindHead;
  /** Ends an attempt whose lease has expired; returns how many. */
  reap: (id: string) => Promise<number>;
  isDeadLetterTopic: (topic: string) => boolean;
}>;

export type Action = Readonly<{ id: string; actor: string; reason: string | null; act: Act }>;

export const live: Sql = sql`dlq.dlq_messages`;
const archive: Sql = sql`dlq.dlq_messages_archive`;

export const endLease: Sql = sql`
  lease_owner = NULL, lease_until = NULL, lease_lost = false, lease_epoch = nextval('platform.lease_epochs'),
  ${unscheduled}`;

export async function markMessageDead(deps: ActionDeps, action: Action): Promise<void> {
  const isIdle = sql`(t.status = 'PENDING' OR (t.status = 'RETRYING' AND ${leaseIsOver}))`;
  const isDone = await deps.db.transaction(async (tx) => {
    const found = await lockMessage(tx, live, action.id, isIdle);
    if (found === null) return false;
    await endLostRetry(tx, action.id, found);
    await tx.query(sql`UPDATE dlq.dlq_messages t SET status = 'DEAD', ${endLease} WHERE t.id = ${action.id}`);
    await addHistory(tx, action, {
      event: 'marked_dead',
      from: found.status,
      to: 'DEAD',
      topics: topicsOf(found),
    });
    return true;
  });
  if (!isDone) throw await refusal(deps, action.id, 'marked dead');
}

/** Moves an archived message back to the live ones first. */
export async function reopenMessage(deps: ActionDeps, action: Action): Promise<void> {
  const isReopenable = sql`(t.status IN ('DEAD', 'RESOLVED')
    OR (t.status = 'PENDING' AND t.retry_count >= t.max_retries))`;
  const isDone = await deps.db.transaction(async (tx) => {
    let found = await lockMessage(tx, live, action.id, isReopenable);
    if (found === null) {
      await restoreFromArchive(tx, [action.id]);
      found = await lockMessage(tx, live, action.id, isReopenable);
    }
    if (found === null) return false;
    await tx.query(sql`
      UPDATE dlq.dlq_messages t SET status = 'PENDING', retry_count = 0, resolution = NULL, ${endLease}
      WHERE t.id = ${action.id}`);
    await addHistory(tx, action, {
      event: 'reopened',
      from: found.status,
      to: 'PENDING',
      topics: topicsOf(found),
    });
    return true;
  });
  if (!isDone) throw await refusal(deps, action.id, 'reopened');
}

/** An operator may choose a target that `dlq.allowed_targets` does not list, but never a dead-letter topic. */
export async function routeMessage(
  deps: ActionDeps,
  action: Action & Readonly<{ targetTopic: string }>,
): Promise<void> {
  const { id, targetTopic } = action;
  if (!isLegalTopic(targetTopic)) throw wrongTarget(targetTopic, 'is not the name of a topic to publish to');
  if (deps.isDeadLetterTopic(targetTopic)) throw wrongTarget(targetTopic, 'is a dead-letter topic');
  const route = (): Promise<boolean> =>
    deps.db.transaction(async (tx) => {
      const found = await lockMessage(tx, live, id, sql`t.status IN ('PENDING', 'DEAD')`);
      if (found === null) return false;
      const { status, originalTopic } = found;
      await tx.query(sql`
        UPDATE dlq.dlq_messages t
        SET original_topic = ${targetTopic}, unroutable = false, routed = true, ${endLease}
        WHERE t.id = ${id}`);
      const detail = `from ${originalTopic} to ${targetTopic}`;
      await addHistory(tx, action, {
        event: 'routed',
        from: status,
        to: status,
        detail,
        topics: [...new Set([originalTopic, targetTopic])],
      });
      return true;
    });
  // A retry whose worker was lost is reaped first; what it leaves can be routed.
  const isDone = (await route()) || ((await deps.reap(id)) > 0 && (await route()));
  if (!isDone) throw await refusal(deps, id, 'routed');
}

export async function deleteMessage(deps: ActionDeps, action: Action): Promise<void> {
  const isFree = sql`(t.status <> 'RETRYING' OR ${leaseIsOver})`;
  const isDone = await deps.db.transaction(async (tx) => {
    // A message that is archived or restored between two lookups would be missed by both.
    let found: LockedMessage | null = null;
    for (const table of [live, archive, live]) found ??= await lockMessage(tx, table, action.id, isFree);
    if (found === null) return false;
    const { table, status } = found;
    await endLostRetry(tx, action.id, found);
    await addHistory(tx, action, {
      event: 'deleted',
      from: status,
      to: null,
      table,
      topics: topicsOf(found),
    });
    await tx.query(sql`
      WITH removed AS (
        DELETE FROM ${table} WHERE id = ${action.id}
        RETURNING id, source_topic_id, source_partition, source_offset
      )
      INSERT INTO dlq.arrivals (topic_id, partition, "offset", message_id, kind)
      SELECT source_topic_id, source_partition, source_offset, id, 'deleted'
      FROM removed
      WHERE source_topic_id IS NOT NULL
      ON CONFLICT DO NOTHING`);
    return true;
  });
  if (!isDone) throw await refusal(deps, action.id, 'deleted');
}

type LockedMessage = Readonly<{ table: Sql; status: string; originalTopic: string }>;

const topicsOf = ({ originalTopic }: LockedMessage): readonly string[] => [originalTopic];

async function lockMessage(tx: Queryable, table: Sql, id: string, guard: Sql): Promise<LockedMessage | null> {
  const rows = await tx.query<Omit<LockedMessage, 'table'>>(sql`
    SELECT t.status, t.original_topic AS "originalTopic" FROM ${table} t WHERE t.id = ${id} AND ${guard} FOR UPDATE`);
  return rows[0] === undefined ? null : { table, ...rows[0] };
}

/** A retry whose lease has expired is not left to the reaper, so its outcome is recorded here. */
async function endLostRetry(tx: Queryable, id: string, { status, table }: LockedMessage): Promise<void> {
  if (status !== 'RETRYING') return;
  await tx.query(
    insertUnknown({
      from: sql`(SELECT 'dlq/messages/' || t.id, t.attempt_no, 'the lease expired during the retry' FROM ${table} t
                 WHERE t.id = ${id})`,
    }),
  );
}

/** To the item's history, and to the audit log. */
export async function addHistory(
  tx: Queryable,
  { id, actor, reason, act }: Action,
  change: Readonly<{
    event: string;
    from: string;
    to: string | null;
    detail?: string;
    /** That the event made. */
    version?: number;
    table?: Sql;
    /** The topics that the decision is about. */
    topics: readonly string[];
  }>,
): Promise<void> {
  const { event, from, to, detail, version } = change;
  await recordAct(tx, act, {
    resource: `dlq/messages/${id}`,
    names: { topics: change.topics },
    detail: {
      event,
      from,
      to,
      ...(version === undefined ? {} : { version }),
      ...(detail === undefined ? {} : { detail }),
    },
  });
  await tx.query(sql`
    INSERT INTO dlq.message_history
      (message_id, event, actor, reason, status_from, status_to, retry_count, attempt_no, lease_epoch, detail,
       version, original_topic)
    SELECT id, ${change.event}, ${actor}, ${reason}, ${change.from}, ${change.to}, retry_count, attempt_no,
           lease_epoch, ${change.detail ?? null}, ${change.version ?? null}::int, original_topic
    FROM ${change.table ?? live} WHERE id = ${id}`);
}

export function wrongTarget(topic: string, why: string): AppError {
  return new AppError('SYS_DLQ_WRONG_TARGET', 'semantic', `${topic} ${why}`, {
    details: [{ field: 'target_topic', reason: 'not_a_target', message: why }],
  });
}

async function refusal(deps: ActionDeps, id: string, what: string): Promise<AppError> {
  const message = await deps.findHead(id);
  if (message === null) return messageNotFound(id);
  const state = `status=${message.status}, retry_count=${message.retryCount}/${message.maxRetries}`;
  const why = message.isArchived
    ? 'archived, reopen it first'
    : message.leaseIsLive
      ? 'a retry is running'
      : state;
  return new AppError('SYS_DLQ_CONFLICT', 'conflict', `message cannot be ${what}: ${why}`);
}
