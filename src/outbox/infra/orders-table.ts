import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import type { WorkTable } from '../../platform/postgres/work.ts';

export const orders: WorkTable = {
  slice: 'outbox',
  table: sql`outbox.outbox_orders`,
  key: sql`id`,
  keyArray: sql`bigint[]`,
};

/** Orders of one key to one destination, which go out one after another. */
export type Lane = Readonly<{ destination: string; orderingKey: string }>;

/** What holds its key: everything before it must have ended. */
export function holdsItsKey(t: Sql): Sql {
  return sql`${t}.ordering_key IS NOT NULL
    AND (${t}.status IN ('queued', 'sending', 'failed') OR (${t}.status = 'dead' AND ${t}.resolution IS NULL))`;
}

/** Whether another one of the key, before this one, still holds it. */
export function isBehindAnother(t: Sql): Sql {
  return sql`EXISTS (
    SELECT 1 FROM outbox.outbox_orders before
    WHERE before.destination = ${t}.destination AND before.ordering_key = ${t}.ordering_key
      AND before.ordering_seq < ${t}.ordering_seq AND ${holdsItsKey(sql`before`)})`;
}

const laneHash: Sql = sql`hashtextextended(lane.ordering_key, hashtextextended(lane.destination, 5))`;

function laneRows(lanes: readonly Lane[]): Sql {
  return sql`(
    SELECT DISTINCT * FROM unnest(
      ${lanes.map(({ destination }) => destination)}::text[],
      ${lanes.map(({ orderingKey }) => orderingKey)}::text[]) AS lanes (destination, ordering_key)) AS lane`;
}

/**
 * Everything that ends an order of a key, or holds back one behind another, has locked the lane first and looks
 * at it in a later statement. So the first one of a key that holds it is never left held back: whoever ends the
 * one before it sees it, or it sees that end. Callers' transactions never take this lock, so nobody waits for
 * them. Locks are taken in one order: lanes, then ledger rows by key, then orders. (A settle to sent takes its orders and
 * their ledger rows in one statement; the deadlock that may come of it is broken and tried again.)
 */
export async function lockLanes(tx: Queryable, lanes: readonly Lane[]): Promise<void> {
  if (lanes.length === 0) return;
  await tx.query(sql`
    SELECT pg_advisory_xact_lock(hash) FROM (SELECT DISTINCT ${laneHash} AS hash FROM ${laneRows(lanes)} ORDER BY 1) h`);
}

/** As `lockLanes`, but takes only those that are free, and says which. */
export async function tryLockLanes(tx: Queryable, lanes: readonly Lane[]): Promise<readonly Lane[]> {
  if (lanes.length === 0) return [];
  const rows = await tx.query<{ destination: string; ordering_key: string }>(sql`
    SELECT destination, ordering_key FROM (
      SELECT lane.destination, lane.ordering_key, pg_try_advisory_xact_lock(${laneHash}) AS is_ours
      FROM ${laneRows(lanes)}) l
    WHERE is_ours`);
  return rows.map((row) => ({ destination: row.destination, orderingKey: row.ordering_key }));
}

/** After one of a key has ended, under the lock of its lane: the next one is no longer held back. */
export async function releaseNext(tx: Queryable, lanes: readonly Lane[]): Promise<void> {
  if (lanes.length === 0) return;
  await tx.query(sql`
    UPDATE outbox.outbox_orders t SET held = false
    FROM ${laneRows(lanes)}
    CROSS JOIN LATERAL (
      SELECT o.id FROM outbox.outbox_orders o
      WHERE o.destination = lane.destination AND o.ordering_key = lane.ordering_key AND ${holdsItsKey(sql`o`)}
      ORDER BY o.ordering_seq
      LIMIT 1
    ) AS first
    WHERE t.id = first.id AND t.held`);
}

/**
 * Locks the ledger rows of these keys, in the order of the keys. What is decided about them is decided in a later
 * statement, which sees what whoever held them before has written.
 */
export async function lockLedger(tx: Queryable, keys: readonly string[]): Promise<void> {
  await tx.query(sql`
    SELECT 1 FROM outbox.idempo_ledger
    WHERE idempotency_key = ANY(${keys}::text[]) ORDER BY idempotency_key FOR UPDATE`);
}

/** The ledger knows of its effect. To be read in a statement after the rows were locked. */
export function hasSucceeded(key: Sql): Sql {
  return sql`EXISTS (
    SELECT 1 FROM outbox.idempo_ledger l WHERE l.idempotency_key = ${key} AND l.status = 'succeeded')`;
}

/** One row for a person per order that has died; `ended` has id, destination, status and last_error. */
export function tellOfDead(ended: Sql): Sql {
  return sql`, told AS (
    INSERT INTO platform.notify_events (slice, kind, subject, item_id, summary)
    SELECT 'outbox', 'dead', destination, id::text, left(COALESCE(last_error, ''), 500)
    FROM ${ended} WHERE status = 'dead' AND destination NOT LIKE '\\_%'
  )`;
}
