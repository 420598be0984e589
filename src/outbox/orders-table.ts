import type { Queryable } from '../platform/postgres/database.ts';
import { sql, type Sql } from '../platform/postgres/sql.ts';
import { notifyEvents } from '../platform/work/notify-events.ts';
import type { WorkTable } from '../platform/work/work.ts';

export const orders: WorkTable = {
  slice: 'outbox',
  table: sql`outbox.outbox_orders`,
  key: sql`id`,
  keyArray: sql`bigint[]`,
};

/** The subject has added the order `t` over HTTP. */
export function isOrderOf(subject: string): Sql {
  return sql`t.created_by = ${subject}`;
}

/** An ordering lane: the orders of one ordering key to one destination, sent one after another. */
export type Lane = Readonly<{ destination: string; orderingKey: string }>;

/** The lane of an order; empty if it has no ordering key. */
export function laneOf(
  order: Readonly<{ destination: string; orderingKey: string | null }>,
): readonly Lane[] {
  const { destination, orderingKey } = order;
  return orderingKey === null ? [] : [{ destination, orderingKey }];
}

/** An order with an ordering key that is neither sent nor resolved: later orders of its lane must wait for it. */
export function isUnfinished(t: Sql): Sql {
  return sql`${t}.ordering_key IS NOT NULL
    AND (${t}.status IN ('queued', 'sending', 'failed') OR (${t}.status = 'dead' AND ${t}.resolution IS NULL))`;
}

/** Whether an earlier order of the lane is unfinished. */
export function hasPredecessor(t: Sql): Sql {
  return sql`EXISTS (
    SELECT 1 FROM outbox.outbox_orders before
    WHERE before.destination = ${t}.destination AND before.ordering_key = ${t}.ordering_key
      AND before.ordering_seq < ${t}.ordering_seq AND ${isUnfinished(sql`before`)})`;
}

const laneHash: Sql = sql`hashtextextended(lane.ordering_key, hashtextextended(lane.destination, 5))`;

function laneRows(lanes: readonly Lane[]): Sql {
  return sql`(
    SELECT DISTINCT * FROM unnest(
      ${lanes.map(({ destination }) => destination)}::text[],
      ${lanes.map(({ orderingKey }) => orderingKey)}::text[]) AS lanes (destination, ordering_key)) AS lane`;
}

/**
 * Every transaction that finishes an order of a lane, or blocks orders of it, locks the lane first and reads it in a
 * later statement. So the first unfinished order of a lane never stays blocked: the transaction that finishes its
 * predecessor sees it, or the transaction that would block it sees that the predecessor is finished. Callers that add
 * orders never take this lock, so they block nobody.
 *
 * Locks are taken in one order: lanes, then ledger rows by key, then orders. (A settle to sent locks its orders and
 * their ledger rows in one statement; PostgreSQL breaks the deadlock that this can cause, and the settle is retried.)
 */
export async function lockLanes(tx: Queryable, lanes: readonly Lane[]): Promise<void> {
  if (lanes.length === 0) return;
  await tx.query(sql`
    SELECT pg_advisory_xact_lock(hash) FROM (SELECT DISTINCT ${laneHash} AS hash FROM ${laneRows(lanes)} ORDER BY 1) h`);
}

/** Locks only the lanes that nobody else has locked, and returns those. */
export async function tryLockLanes(tx: Queryable, lanes: readonly Lane[]): Promise<readonly Lane[]> {
  if (lanes.length === 0) return [];
  const rows = await tx.query<{ destination: string; ordering_key: string }>(sql`
    SELECT destination, ordering_key FROM (
      SELECT lane.destination, lane.ordering_key, pg_try_advisory_xact_lock(${laneHash}) AS is_locked
      FROM ${laneRows(lanes)}) l
    WHERE is_locked`);
  return rows.map((row) => ({ destination: row.destination, orderingKey: row.ordering_key }));
}

/** Unblocks the first unfinished order of each lane. Call it after finishing an order, with the lane locked. */
export async function unblockNext(tx: Queryable, lanes: readonly Lane[]): Promise<void> {
  if (lanes.length === 0) return;
  await tx.query(sql`
    UPDATE outbox.outbox_orders t SET held = false
    FROM ${laneRows(lanes)}
    CROSS JOIN LATERAL (
      SELECT o.id FROM outbox.outbox_orders o
      WHERE o.destination = lane.destination AND o.ordering_key = lane.ordering_key AND ${isUnfinished(sql`o`)}
      ORDER BY o.ordering_seq
      LIMIT 1
    ) AS first
    WHERE t.id = first.id AND t.held`);
}

/**
 * Locks the ledger rows of these keys, in the order of the keys. Read them in a later statement, which sees what the
 * previous lock holder committed.
 */
export async function lockLedger(tx: Queryable, keys: readonly string[]): Promise<void> {
  await tx.query(sql`
    SELECT 1 FROM outbox.idempo_ledger
    WHERE idempotency_key = ANY(${keys}::text[]) ORDER BY idempotency_key FOR UPDATE`);
}

/** Whether the ledger records the effect. Read it in a statement after the ledger rows were locked. */
export function hasSucceeded(key: Sql): Sql {
  return sql`EXISTS (
    SELECT 1 FROM outbox.idempo_ledger l WHERE l.idempotency_key = ${key} AND l.status = 'succeeded')`;
}

/** Notifies people of dead orders, except internal ones; `ended` has id, destination, status and last_error. */
export function notifyDead(ended: Sql): Sql {
  return notifyEvents(
    {
      slice: sql`'outbox'`,
      kind: sql`'dead'`,
      subject: sql`destination`,
      itemId: sql`id`,
      summary: sql`last_error`,
    },
    { from: ended, where: sql`status = 'dead' AND destination NOT LIKE '\\_%'` },
  );
}
