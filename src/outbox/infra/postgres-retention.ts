import { codeOf } from '../../kernel/errors.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';

export type RetentionOptions = Readonly<{
  /** How long an internal order stays after it was sent; all others say it themselves, in the ledger. */
  ledgerTtlMs: number;
  /** How long the audit and the archive are kept. */
  auditRetentionMs: number;
  batchSize?: number;
}>;

export type Purged = Readonly<{
  /** Orders whose key is free again. */
  archived: number;
  /** Internal orders. */
  deleted: number;
  /** Archived orders whose keep is over. */
  forgotten: number;
}>;

/** How many partitions of the audit were made, taken over from DEFAULT, and dropped. */
export type AuditMaintenance =
  | Readonly<{ outcome: 'done'; made: number; adopted: number; dropped: number }>
  /** Somebody holds the audit for longer than its writers may be kept waiting: try again later. */
  | Readonly<{ outcome: 'busy' }>;

/** Keeps the tables of the outbox small. */
export type Retention = Readonly<{
  /** Moves and deletes all that is over, batch by batch, until the signal aborts. */
  purge(signal: AbortSignal): Promise<Purged>;
  maintainAudit(): Promise<AuditMaintenance>;
}>;

export function createPostgresRetention(
  db: Database,
  { ledgerTtlMs, auditRetentionMs, batchSize = 1000 }: RetentionOptions,
): Retention {
  return {
    async purge(signal) {
      return {
        archived: await archiveExpired(db, batchSize, signal),
        deleted: await repeat(batchSize, signal, () => deleteInternal(db, ledgerTtlMs, batchSize)),
        forgotten: await repeat(batchSize, signal, () => forgetArchived(db, auditRetentionMs, batchSize)),
      };
    },

    async maintainAudit() {
      try {
        // DEFAULT first: a month cannot be made while rows of it are there.
        const adopted = await changeAudit(db, sql`outbox.adopt_default_audit()`);
        const made = await changeAudit(db, sql`outbox.make_audit_months()`);
        const dropped = await changeAudit(db, sql`outbox.drop_old_audit(${interval(auditRetentionMs)})`);
        return { outcome: 'done', made, adopted, dropped };
      } catch (error) {
        if (codeOf(error) === lockNotAvailable) return { outcome: 'busy' };
        throw error;
      }
    },
  };
}

const lockNotAvailable = '55P03';

/**
 * Each change is a transaction of its own, so that it never holds one part of the audit while it waits for another.
 * Whoever writes to the audit waits behind us in turn, so we do not wait long: much shorter than an order that is
 * being accepted waits (500 ms), and shorter than it takes PostgreSQL to look for a deadlock (1 s).
 */
async function changeAudit(db: Database, change: Sql): Promise<number> {
  return db.transaction(async (tx) => {
    await tx.query(sql`SET LOCAL lock_timeout = '100ms'`);
    const [row] = await tx.query<{ count: number }>(sql`SELECT ${change} AS count`);
    return row?.count ?? 0;
  });
}

type ExpiredRow = Readonly<{ idempotency_key: string; outbox_id: bigint; expires_at: string }>;

/**
 * One pass over what has expired, so that a row that may not leave does not stand in the way of those behind it.
 * Order and ledger row go in one transaction, and with them the key becomes free.
 */
async function archiveExpired(db: Database, batchSize: number, signal: AbortSignal): Promise<number> {
  let archived = 0;
  let last: ExpiredRow | undefined;
  while (!signal.aborted) {
    const after = last;
    const batch = await db.transaction(async (tx) => {
      const expired = await lockExpired(tx, after, batchSize);
      return { expired, moved: expired.length === 0 ? 0 : await moveToArchive(tx, expired) };
    });
    archived += batch.moved;
    last = batch.expired.at(-1);
    if (batch.expired.length < batchSize) break;
  }
  return archived;
}

/**
 * The ledger's rows are locked first, as everywhere in the slice; what becomes of their orders is decided in the
 * next statement, which sees what whoever held them before has written. As both statements leave out what is
 * locked, the purge never waits for anybody while it holds rows.
 */
async function lockExpired(
  tx: Queryable,
  after: ExpiredRow | undefined,
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
  resolution, supersedes_id, lease_owner, lease_until, lease_epoch, lease_lost`;

const ledgerColumns: Sql = sql`
  idempotency_key, request_digest, result_digest, expires_at, outbox_id, status, http_status, response_payload,
  outside_id, created_at, updated_at`;

/** An order that is neither sent nor resolved stays, whatever its ledger row says. */
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

/** Those have no ledger row; one that has is not ours to delete. */
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

/** Their months of the audit are gone by then, or go with the next ones. */
async function forgetArchived(db: Queryable, keepMs: number, limit: number): Promise<number> {
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

/** Until a batch is not full, or the signal aborts. */
async function repeat(
  batchSize: number,
  signal: AbortSignal,
  removeBatch: () => Promise<number>,
): Promise<number> {
  let removed = 0;
  while (!signal.aborted) {
    const count = await removeBatch();
    removed += count;
    if (count < batchSize) break;
  }
  return removed;
}

function interval(ms: number): Sql {
  return sql`(${ms} * interval '1 millisecond')`;
}
