import { hourMs, minuteMs } from '../../kernel/duration.ts';
import { codeOf } from '../../kernel/errors.ts';
import type { Service } from '../../kernel/service.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import {
  batchTask,
  deleteTask,
  type Batch,
  type RetentionTask,
} from '../../platform/work/retention-tasks.ts';
import { createRetention, every, TableBusyError, type RetentionLog } from '../../platform/work/retention.ts';
import type { Worker } from '../../platform/work/work.ts';

export type OrderRetentionOptions = Readonly<{
  /** How long an internal order stays after it was sent; all others expire with their ledger row. */
  ledgerTtlMs: number;
  /** How long the audit and the archive are kept. */
  auditRetentionMs: number;
  batchSize?: number;
}>;

export function createOrderRetention(
  worker: Worker,
  { db, log, options }: Readonly<{ db: Database; log: RetentionLog; options: OrderRetentionOptions }>,
): Service {
  return createRetention(worker, {
    name: 'outbox.retention',
    rounds: [
      {
        schedule: every(minuteMs),
        tasks: orderRetention(db, options),
        done: 'archived and deleted expired orders',
      },
      {
        schedule: every(hourMs),
        tasks: [auditPartitions(db, options)],
        done: 'maintained the partitions of the audit',
      },
    ],
    log,
  });
}

export function orderRetention(
  db: Database,
  { ledgerTtlMs, auditRetentionMs, batchSize = 1000 }: OrderRetentionOptions,
): readonly RetentionTask[] {
  return [
    batchTask<ExpiredRow>('expired orders', (after) => archiveBatch(db, after, batchSize)),
    deleteTask({ name: 'internal orders', count: 'deleted', batchSize }, (limit) =>
      deleteInternal(db, ledgerTtlMs, limit),
    ),
    deleteTask({ name: 'archived orders', count: 'purged', batchSize }, (limit) =>
      purgeArchive(db, auditRetentionMs, limit),
    ),
  ];
}

const lockNotAvailable = '55P03';

/** Creates the partitions of the coming months, moves rows from the DEFAULT partition and drops old partitions. */
export function auditPartitions(
  db: Database,
  { auditRetentionMs }: Pick<OrderRetentionOptions, 'auditRetentionMs'>,
): RetentionTask {
  return {
    name: 'audit partitions',
    async run() {
      try {
        // DEFAULT first: PostgreSQL refuses a new partition while DEFAULT has rows of its month.
        const adopted = await changeAudit(db, sql`outbox.adopt_default_audit()`);
        const made = await changeAudit(db, sql`outbox.make_audit_months()`);
        const dropped = await changeAudit(db, sql`outbox.drop_old_audit(${interval(auditRetentionMs)})`);
        return { made, adopted, dropped };
      } catch (error) {
        if (codeOf(error) === lockNotAvailable) throw new TableBusyError('the audit is locked');
        throw error;
      }
    },
  };
}

/**
 * Each change is its own transaction, so that it never locks one partition while it waits for another. Writers to the
 * audit queue up behind our lock request, so it waits only briefly: much shorter than the lock timeout of an order that
 * is being accepted (500 ms), and shorter than PostgreSQL's deadlock check (1 s).
 */
async function changeAudit(db: Database, change: Sql): Promise<number> {
  return db.transaction(async (tx) => {
    await tx.query(sql`SET LOCAL lock_timeout = '100ms'`);
    const [row] = await tx.query<{ count: number }>(sql`SELECT ${change} AS count`);
    return row?.count ?? 0;
  });
}

type ExpiredRow = Readonly<{ idempotency_key: string; outbox_id: bigint; expires_at: string }>;

/** Order and ledger row are archived in one transaction, which frees the idempotency key. */
async function archiveBatch(
  db: Database,
  after: ExpiredRow | null,
  limit: number,
): Promise<Batch<ExpiredRow>> {
  return db.transaction(async (tx) => {
    const expired = await lockExpired(tx, after, limit);
    const archived = expired.length === 0 ? 0 : await moveToArchive(tx, expired);
    return { counts: { archived }, next: expired.length < limit ? null : (expired.at(-1) ?? null) };
  });
}

/**
 * Locks ledger rows first, as everywhere in this slice. Their orders are checked in the next statement, whose snapshot
 * includes what the previous holder of the lock has written. Both statements skip locked rows, so retention never waits
 * for a lock while it holds one.
 */
async function lockExpired(
  tx: Queryable,
  after: ExpiredRow | null,
  limit: number,
): Promise<readonly ExpiredRow[]> {
  return tx.query<ExpiredRow>(sql`
    SELECT l.idempotency_key, l.outbox_id, l.expires_at::text
    FROM outbox.idempo_ledger l
    WHERE l.expires_at < 'infinity' AND l.expires_at <= now()
      AND (l.expires_at, l.idempotency_key)
          > (${after?.expires_at ?? '-infinity'}::timestamptz, ${after?.idempotency_key ?? ''})
    ORDER BY l.expires_at, l.idempotency_key
    LIMIT ${limit}
    FOR UPDATE SKIP LOCKED`);
}

const orderColumns: Sql = sql`
  id, idempotency_key, request_json, request_digest, status, retry_count, next_attempt_at, last_error, created_at,
  updated_at, destination, ordering_key, ordering_seq, held, trace_id, traceparent, first_sent_at, in_doubt, response,
  resolution, supersedes_id, lease_owner, lease_until, lease_epoch, lease_lost, fingerprint,
  created_by`;

const ledgerColumns: Sql = sql`
  idempotency_key, request_digest, result_digest, expires_at, outbox_id, status, http_status, response_payload,
  outside_id, created_at, updated_at`;

/** An order that is neither sent nor resolved stays, even if its ledger row has expired. */
async function moveToArchive(tx: Queryable, expired: readonly ExpiredRow[]): Promise<number> {
  const [row] = await tx.query<{ moved: number }>(sql`
    WITH ended AS MATERIALIZED (
      SELECT o.id, o.idempotency_key
      FROM unnest(
        ${expired.map((row) => row.outbox_id)}::bigint[],
        ${expired.map((row) => row.idempotency_key)}::text[]) AS expired (id, idempotency_key)
      JOIN outbox.outbox_orders o ON o.id = expired.id AND o.idempotency_key = expired.idempotency_key
      WHERE o.status = 'sent' OR (o.status = 'dead' AND o.resolution IS NOT NULL)
      FOR UPDATE OF o SKIP LOCKED
    ), entries AS (
      DELETE FROM outbox.idempo_ledger l USING ended
      WHERE l.idempotency_key = ended.idempotency_key AND l.outbox_id = ended.id
      RETURNING l.*
    ), kept_entries AS (
      INSERT INTO outbox.idempo_ledger_archive (${ledgerColumns}, archived_at)
      SELECT ${ledgerColumns}, now() FROM entries
    ), orders AS (
      DELETE FROM outbox.outbox_orders o USING ended WHERE o.id = ended.id RETURNING o.*
    ), kept_orders AS (
      INSERT INTO outbox.outbox_orders_archive (${orderColumns}, archived_at)
      SELECT ${orderColumns}, now() FROM orders
      RETURNING id
    )
    SELECT count(*)::int AS moved FROM kept_orders`);
  return row?.moved ?? 0;
}

/** Internal orders have no ledger row. One that has was not added by the system, and stays. */
async function deleteInternal(db: Queryable, ledgerTtlMs: number, limit: number): Promise<number> {
  const rows = await db.query(sql`
    WITH old AS MATERIALIZED (
      SELECT o.id FROM outbox.outbox_orders o
      WHERE o.status = 'sent' AND starts_with(o.destination, '_')
        AND o.updated_at < now() - ${interval(ledgerTtlMs)}
        AND NOT EXISTS (SELECT 1 FROM outbox.idempo_ledger l WHERE l.idempotency_key = o.idempotency_key)
      ORDER BY o.updated_at
      LIMIT ${limit}
      FOR UPDATE OF o SKIP LOCKED
    )
    DELETE FROM outbox.outbox_orders o USING old WHERE o.id = old.id
    RETURNING o.id`);
  return rows.length;
}

/** By then their audit partition is dropped, or will be with the next ones. */
async function purgeArchive(db: Queryable, keepMs: number, limit: number): Promise<number> {
  const rows = await db.query(sql`
    WITH old AS MATERIALIZED (
      SELECT id FROM outbox.outbox_orders_archive
      WHERE archived_at < now() - ${interval(keepMs)}
      ORDER BY archived_at
      LIMIT ${limit}
      FOR UPDATE SKIP LOCKED
    ), entries AS (
      DELETE FROM outbox.idempo_ledger_archive l USING old WHERE l.outbox_id = old.id
    )
    DELETE FROM outbox.outbox_orders_archive o USING old WHERE o.id = old.id
    RETURNING o.id`);
  return rows.length;
}

function interval(ms: number): Sql {
  return sql`(${ms} * interval '1 millisecond')`;
}
