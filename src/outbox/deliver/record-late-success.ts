import type { Database } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { Worker } from '../../platform/work/work.ts';
import { addNotifyEvent } from '../../platform/work/notify-events.ts';
import type { Resolution, Status } from '../domain/order.ts';
import { lockLanes, lockLedger, unblockNext, type Lane } from '../orders-table.ts';

/** A send that succeeded after its worker had lost the lease. */
export type LateSuccess = Readonly<{
  id: bigint;
  idempotencyKey: string;
  lanes: readonly Lane[];
  epoch: bigint;
  response: string;
  digest: string;
  outsideId: string | null;
}>;

type Found = Readonly<{
  status: Status;
  resolution: Resolution | null;
  retry_count: number;
  trace_id: string | null;
  destination: string;
  is_recorded: boolean;
}>;

/**
 * Records a late success in the ledger, so that the order is not sent again. A dead order without a resolution becomes
 * sent. A waiting or sending one stays as it is: its next check reads the ledger. A resolved one keeps its resolution,
 * and a notification says that its effect has happened (not for internal orders, which may be notifications).
 */
export async function recordLateSuccess(
  { db, worker, ledgerTtlMs }: Readonly<{ db: Database; worker: Worker; ledgerTtlMs: number }>,
  late: LateSuccess,
): Promise<void> {
  await db.transaction(async (tx) => {
    await lockLanes(tx, late.lanes);
    await lockLedger(tx, [late.idempotencyKey]);
    const [order] = await tx.query<Found>(sql`
      SELECT t.status, t.resolution, t.retry_count, t.trace_id, t.destination,
             EXISTS (SELECT 1 FROM outbox.outbox_audit a
                     WHERE a.outbox_id = t.id AND a.lease_epoch = ${late.epoch} AND a.reason = ${lateReason}) AS is_recorded
      FROM outbox.outbox_orders t WHERE t.id = ${late.id} FOR UPDATE`);
    if (order === undefined || order.is_recorded) return;
    const revives = order.status === 'dead' && order.resolution === null;
    const hasEnded = revives || order.status === 'sent' || order.resolution !== null;
    await tx.query(sql`
      UPDATE outbox.idempo_ledger
      SET status = 'succeeded', result_digest = ${late.digest}, outside_id = ${late.outsideId},
          expires_at = CASE WHEN ${hasEnded}
                            THEN clock_timestamp() + ${ledgerTtlMs} * interval '1 millisecond' ELSE expires_at END,
          updated_at = clock_timestamp()
      WHERE idempotency_key = ${late.idempotencyKey}`);
    if (revives)
      await tx.query(sql`
        UPDATE outbox.outbox_orders
        SET status = 'sent', response = ${late.response}::jsonb, last_error = NULL, fingerprint = NULL,
            updated_at = clock_timestamp()
        WHERE id = ${late.id}`);
    await tx.query(sql`
      INSERT INTO outbox.outbox_audit
        (outbox_id, status_from, status_to, retry_count, idempotency_key, trace_id, broker_order_id, lease_epoch,
         actor, reason)
      VALUES (${late.id}, ${order.status}, ${revives ? 'sent' : order.status}, ${order.retry_count},
              ${late.idempotencyKey}, ${order.trace_id}, ${late.outsideId}, ${late.epoch}, ${worker.owner},
              ${lateReason})`);
    if (order.resolution !== null && !order.destination.startsWith('_'))
      await addNotifyEvent(tx, {
        slice: 'outbox',
        kind: 'late_success',
        subject: order.destination,
        itemId: String(late.id),
        summary: `the order was ${order.resolution}, but its effect has happened`,
      });
    if (revives) await unblockNext(tx, late.lanes);
  });
}

const lateReason = 'late success';
