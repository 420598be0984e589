import type { Backoff } from '../../kernel/backoff.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { leaseIsOver, reap } from '../../platform/postgres/work.ts';
import type { Status } from '../domain/order.ts';
import { hasSucceeded, lockLanes, lockLedger, orders, releaseNext, tellOfDead } from './orders-table.ts';

export type ReapDeps = Readonly<{
  db: Database;
  retryMax: number;
  /** Of destinations that have a number of retries of their own. */
  ownRetryMax: ReadonlyMap<string, number>;
  backoff: Backoff;
  ledgerTtlMs: number;
  /** Destinations that can be asked: there the next claim finds out, also where no retry is left. */
  askable: readonly string[];
}>;

const reapBatch = 500;

type Stuck = Readonly<{
  id: bigint;
  idempotency_key: string;
  destination: string;
  ordering_key: string | null;
}>;

/**
 * Ends attempts whose worker is lost. Whether they had their effect is not known, unless the ledger says so: the
 * next claim decides about sending again. Where no retry is left, a person has to look.
 */
export async function reapOrders(deps: ReapDeps): Promise<number> {
  const { db, backoff, ledgerTtlMs } = deps;
  const own = JSON.stringify(Object.fromEntries(deps.ownRetryMax));
  const retryMax = sql`COALESCE((${own}::jsonb ->> t.destination)::int, ${deps.retryMax}::int)`;
  // One that can be asked about is claimed once more, for the question alone; what is lost then is lost for good.
  const isSpent = sql`(t.retry_count >= ${retryMax} + (t.destination = ANY(${deps.askable}::text[]))::int)`;
  return db.transaction(async (tx) => {
    const stuck = await tx.query<Stuck>(sql`
      SELECT t.id, t.idempotency_key, t.destination, t.ordering_key FROM outbox.outbox_orders t
      WHERE t.status = 'sending' AND ${leaseIsOver} LIMIT ${reapBatch}`);
    if (stuck.length === 0) return 0;
    await lockLanes(tx, stuck.flatMap(laneOf));
    await lockLedger(
      tx,
      stuck.map((row) => row.idempotency_key),
    );
    const rows = await reap<Stuck & { status: Status }>(tx, orders, {
      where: sql`t.status = 'sending' AND t.id = ANY(${stuck.map(({ id }) => id)}::bigint[])`,
      limit: reapBatch,
      set: sql`
        status = CASE WHEN ${isDone} THEN 'sent' WHEN ${isSpent} THEN 'dead' ELSE 'failed' END,
        retry_count = t.retry_count + CASE WHEN ${isDone} OR ${isSpent} THEN 0 ELSE 1 END,
        last_error = CASE WHEN ${isDone} THEN NULL ELSE 'UNKNOWN: lease expired' END,
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
      )${tellOfDead(sql`reaped`)}`,
    });
    await releaseNext(tx, rows.filter(({ status }) => status === 'sent').flatMap(laneOf));
    return rows.length;
  });
}

const isDone: Sql = hasSucceeded(sql`t.idempotency_key`);

/** As backoffMs in the kernel; the count is the one before this failure. */
function delayMs({ initialMs, maxMs, jitter }: Backoff): Sql {
  return sql`(
    LEAST(${initialMs}::float8 * 2 ^ LEAST(t.retry_count, 52), ${maxMs}::float8)
    * (1 + ${jitter}::float8 * (2 * random() - 1)))`;
}

function laneOf(row: Stuck): readonly Readonly<{ destination: string; orderingKey: string }>[] {
  return row.ordering_key === null ? [] : [{ destination: row.destination, orderingKey: row.ordering_key }];
}
