import type { Backoff } from '../../kernel/backoff.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { leaseIsOver, reap } from '../../platform/work/work.ts';
import { errorFingerprint } from '../domain/error-fingerprint.ts';
import { leaseExpired, type Status } from '../domain/order.ts';
import {
  hasSucceeded,
  laneOf,
  lockLanes,
  lockLedger,
  notifyDead,
  orders,
  unblockNext,
} from '../orders-table.ts';
import type { OpenDestination } from './senders/port.ts';

export type ReapDeps = Readonly<{
  db: Database;
  /** For destinations that are not configured in this process. */
  retryMax: number;
  destinations: ReadonlyMap<string, Pick<OpenDestination, 'policy' | 'askStatus'>>;
  backoff: Backoff;
  ledgerTtlMs: number;
}>;

const reapBatch = 500;

type ExpiredRow = Readonly<{
  id: bigint;
  idempotency_key: string;
  destination: string;
  ordering_key: string | null;
}>;

const isDone: Sql = hasSucceeded(sql`t.idempotency_key`);

/**
 * Ends attempts whose lease has expired, and returns how many. Whether they had their effect is unknown, unless the
 * ledger records it: the check after the next claim decides whether the order is sent again. An order without retries
 * left dies and needs attention.
 */
export async function reapOrders(deps: ReapDeps): Promise<number> {
  const { db, backoff, ledgerTtlMs } = deps;
  const isSpent = hasNoRetriesLeft(deps);
  return db.transaction(async (tx) => {
    const expired = await tx.query<ExpiredRow>(sql`
      SELECT t.id, t.idempotency_key, t.destination, t.ordering_key FROM outbox.outbox_orders t
      WHERE t.status = 'sending' AND ${leaseIsOver} LIMIT ${reapBatch}`);
    if (expired.length === 0) return 0;
    await lockLanes(tx, lanesOf(expired));
    await lockLedger(
      tx,
      expired.map((row) => row.idempotency_key),
    );
    const rows = await reap<ExpiredRow & { status: Status }>(tx, orders, {
      where: sql`t.status = 'sending' AND t.id = ANY(${expired.map(({ id }) => id)}::bigint[])`,
      limit: reapBatch,
      set: sql`
        status = CASE WHEN ${isDone} THEN 'sent' WHEN ${isSpent} THEN 'dead' ELSE 'failed' END,
        retry_count = t.retry_count + CASE WHEN ${isDone} OR ${isSpent} THEN 0 ELSE 1 END,
        last_error = CASE WHEN ${isDone} THEN NULL ELSE ${leaseExpired} END,
        fingerprint = CASE WHEN ${isDone} THEN NULL ELSE ${errorFingerprint(leaseExpired)} END,
        next_attempt_at = clock_timestamp() + ${delayMs(backoff)} * interval '1 millisecond',
        in_doubt = true, updated_at = clock_timestamp()`,
      returning: sql`
        t.id, t.status, t.idempotency_key, t.destination, t.ordering_key, t.retry_count, t.last_error, t.trace_id,
        t.lease_epoch`,
      also: sql`, entered AS (
        UPDATE outbox.idempo_ledger l
        SET status = CASE WHEN r.status = 'dead' THEN 'failed' ELSE l.status END,
            expires_at = CASE WHEN r.status = 'sent'
                              THEN clock_timestamp() + ${ledgerTtlMs} * interval '1 millisecond' ELSE l.expires_at END,
            updated_at = clock_timestamp()
        FROM reaped r WHERE l.idempotency_key = r.idempotency_key AND r.status IN ('sent', 'dead')
      ), noted AS (
        INSERT INTO outbox.outbox_audit
          (outbox_id, status_from, status_to, retry_count, last_error, idempotency_key, trace_id, lease_epoch, actor,
           reason)
        SELECT id, 'sending', status, retry_count, last_error, idempotency_key, trace_id, lease_epoch, 'reaper',
               'lease expired'
        FROM reaped
      )${notifyDead(sql`reaped`)}`,
    });
    await unblockNext(tx, lanesOf(rows.filter(({ status }) => status === 'sent')));
    return rows.length;
  });
}

/** An order that its destination can be asked about is claimed once more, for the status question alone. */
function hasNoRetriesLeft({ retryMax, destinations }: ReapDeps): Sql {
  const limits = [...destinations].map(([name, { policy, askStatus }]) => [
    name,
    policy.retryMax + (askStatus === null ? 0 : 1),
  ]);
  const limitOf = JSON.stringify(Object.fromEntries(limits));
  return sql`(t.retry_count >= COALESCE((${limitOf}::jsonb ->> t.destination)::int, ${retryMax}::int))`;
}

/** As `backoffMs` in the kernel; the count is the one before this failure. */
function delayMs({ initialMs, maxMs, jitter }: Backoff): Sql {
  return sql`(
    LEAST(${initialMs}::float8 * 2 ^ LEAST(t.retry_count, 52), ${maxMs}::float8)
    * (1 + ${jitter}::float8 * (2 * random() - 1)))`;
}

function lanesOf(rows: readonly ExpiredRow[]): ReturnType<typeof laneOf> {
  return rows.flatMap((row) => laneOf({ destination: row.destination, orderingKey: row.ordering_key }));
}
