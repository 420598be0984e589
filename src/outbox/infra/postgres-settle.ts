import { cleanText } from '../../kernel/text.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { rowsOf, type Column } from '../../platform/postgres/rows-of.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { settle, type Worker } from '../../platform/postgres/work.ts';
import type { Settlement, Status } from '../domain/order.ts';
import type { Attempt, ClaimedOrder, SettledAttempt } from '../usecase/ports.ts';
import { noteLateSuccess, type LateSuccess } from './postgres-late-success.ts';
import {
  hasSucceeded,
  lockLanes,
  lockLedger,
  orders,
  releaseNext,
  tellOfDead,
  type Lane,
} from './orders-table.ts';

export type SettleDeps = Readonly<{ db: Database; worker: Worker; ledgerTtlMs: number }>;

type SettledRow = Readonly<{ id: bigint; status: Status }>;

/**
 * Ends attempts, of however many claims. Successes are one statement: order, ledger and audit. For every other end
 * the ledger is locked first and read in a later statement, because a late success of an earlier attempt may have
 * been written meanwhile; then the order is sent, whatever this attempt came to.
 *
 * Safe to repeat after a lost answer: a row that already shows the end of this claim is settled. Every other row
 * that does not match was taken from us. Then a success is still a fact and is written down; the rest is dropped.
 */
export async function settleAttempts(
  deps: SettleDeps,
  attempts: readonly Attempt[],
): Promise<readonly SettledAttempt[]> {
  const successes = attempts.filter(isSuccess);
  const others = attempts.filter((attempt) => !isSuccess(attempt));
  const settled = new Map<bigint, Status | null>();
  const note = (rows: readonly SettledRow[]): void => {
    for (const { id, status } of rows) settled.set(id, status);
  };
  const free = successes.filter(({ order }) => order.orderingKey === null);
  const keyed = successes.filter(({ order }) => order.orderingKey !== null);
  if (free.length > 0) note(await settleSent(deps, deps.db, free));
  if (keyed.length > 0) note(await inLanes(deps.db, keyed, (tx) => settleSent(deps, tx, keyed)));
  if (others.length > 0)
    note(
      await inLanes(deps.db, others, async (tx) => {
        await lockLedger(
          tx,
          others.map(({ order }) => order.idempotencyKey),
        );
        return settleOthers(deps, tx, others);
      }),
    );
  const unmatched = attempts.filter(({ order }) => !settled.has(order.id));
  if (unmatched.length > 0) await explain(deps, unmatched, settled);
  return attempts.map(({ order }) => ({ id: order.id, status: settled.get(order.id) ?? null }));
}

type Success = Attempt & Readonly<{ settlement: Extract<Settlement, { to: 'sent' }> }>;

function isSuccess(attempt: Attempt): attempt is Success {
  return attempt.settlement.to === 'sent';
}

/** Under the locks of the lanes; those in which an order has ended go on with their next one. */
async function inLanes(
  db: Database,
  attempts: readonly Attempt[],
  work: (tx: Queryable) => Promise<readonly SettledRow[]>,
): Promise<readonly SettledRow[]> {
  return db.transaction(async (tx) => {
    const lanes = attempts.flatMap(({ order }) => laneOf(order));
    await lockLanes(tx, lanes);
    const rows = await work(tx);
    const sent = new Set(rows.filter(({ status }) => status === 'sent').map(({ id }) => id));
    const ended = attempts.filter(({ order }) => sent.has(order.id));
    await releaseNext(
      tx,
      ended.flatMap(({ order }) => laneOf(order)),
    );
    return rows;
  });
}

function laneOf({ destination, orderingKey }: ClaimedOrder): readonly Lane[] {
  return orderingKey === null ? [] : [{ destination, orderingKey }];
}

const returning: Sql = sql`
  t.id, t.status, t.destination, t.idempotency_key, t.retry_count, t.last_error, t.trace_id, t.lease_epoch`;

async function settleSent(
  { worker, ledgerTtlMs }: SettleDeps,
  tx: Queryable,
  attempts: readonly Success[],
): Promise<readonly SettledRow[]> {
  return settle<SettledRow>(tx, orders, {
    held: rowsOf(sql`held`, attempts, [
      [sql`key`, sql`bigint[]`, ({ order }) => order.id],
      [sql`epoch`, sql`bigint[]`, ({ order }) => order.lease.epoch],
      [sql`response`, sql`jsonb[]`, responseOf],
      [sql`digest`, sql`text[]`, ({ settlement }) => settlement.answer.digest],
      [sql`outside_id`, sql`text[]`, ({ settlement }) => outsideIdOf(settlement)],
      [sql`error`, sql`text[]`, ({ settlement }) => (settlement.isConflict ? conflictText : null)],
    ]),
    count: attempts.length,
    guard: sql`t.status = 'sending'`,
    set: sql`status = 'sent', response = held.response, last_error = held.error, updated_at = clock_timestamp()`,
    returning: sql`${returning}, held.digest, held.outside_id`,
    also: sql`, entered AS (
      UPDATE outbox.idempo_ledger l
      SET status = 'succeeded', result_digest = s.digest, outside_id = s.outside_id,
          expires_at = ${expiry(ledgerTtlMs)}, updated_at = clock_timestamp()
      FROM settled s WHERE l.idempotency_key = s.idempotency_key
    ), noted AS (
      INSERT INTO outbox.outbox_audit
        (outbox_id, status_from, status_to, retry_count, last_error, idempotency_key, trace_id, broker_order_id,
         lease_epoch, actor)
      SELECT id, 'sending', 'sent', retry_count, last_error, idempotency_key, trace_id, outside_id, lease_epoch,
             ${worker.owner}
      FROM settled
    )`,
  });
}

const conflictText = 'CONFLICT_PROCESSED: the destination had processed it before';

/** What is not a success of this attempt. The ledger's rows are locked by the statement before. */
async function settleOthers(
  { worker, ledgerTtlMs }: SettleDeps,
  tx: Queryable,
  attempts: readonly Attempt[],
): Promise<readonly SettledRow[]> {
  const ends = attempts.map(({ order, settlement }) => endOf(order, settlement));
  return settle<SettledRow>(tx, orders, {
    held: sql`(
      SELECT end_of.*, ${hasSucceeded(sql`end_of.idempotency_key`)} AS is_done
      FROM ${rowsOf(sql`end_of`, ends, endColumns)}
    ) AS held`,
    count: attempts.length,
    guard: sql`t.status = 'sending'`,
    set: sql`
      status = CASE WHEN held.is_done THEN 'sent' ELSE held.status END,
      last_error = CASE WHEN held.is_done THEN NULL ELSE COALESCE(held.error, t.last_error) END,
      retry_count = t.retry_count + CASE WHEN held.is_done THEN 0 ELSE held.costs END,
      next_attempt_at = CASE WHEN held.is_done OR held.status = 'dead' THEN t.next_attempt_at
                             ELSE clock_timestamp() + held.delay_ms * interval '1 millisecond' END,
      first_sent_at = CASE WHEN held.is_unsent THEN held.was_sent_at ELSE t.first_sent_at END,
      in_doubt = t.in_doubt OR held.in_doubt,
      updated_at = clock_timestamp()`,
    keepsLeaseLost: sql`(held.reason IS NOT NULL)`,
    returning: sql`${returning}, held.reason, held.is_done`,
    also: sql`, entered AS (
      UPDATE outbox.idempo_ledger l
      SET status = CASE WHEN s.status = 'dead' THEN 'failed' ELSE l.status END,
          expires_at = CASE WHEN s.status = 'sent' THEN ${expiry(ledgerTtlMs)} ELSE l.expires_at END,
          updated_at = clock_timestamp()
      FROM settled s WHERE l.idempotency_key = s.idempotency_key AND s.status IN ('sent', 'dead')
    ), noted AS (
      INSERT INTO outbox.outbox_audit
        (outbox_id, status_from, status_to, retry_count, last_error, idempotency_key, trace_id, lease_epoch, actor,
         reason)
      SELECT id, 'sending', status, retry_count, CASE WHEN reason IS NULL THEN last_error END, idempotency_key,
             trace_id, lease_epoch, ${worker.owner}, CASE WHEN is_done THEN 'the ledger knows that it has happened' ELSE reason END
      FROM settled
    )${tellOfDead(sql`settled`)}`,
  });
}

type End = Readonly<{
  order: ClaimedOrder;
  status: Status;
  error: string | null;
  reason: string | null;
  delayMs: number;
  costs: number;
  inDoubt: boolean;
  /** Nothing left in this attempt, so it is as if it had not been. */
  isUnsent: boolean;
}>;

const endColumns: readonly Column<End>[] = [
  [sql`key`, sql`bigint[]`, ({ order }) => order.id],
  [sql`epoch`, sql`bigint[]`, ({ order }) => order.lease.epoch],
  [sql`idempotency_key`, sql`text[]`, ({ order }) => order.idempotencyKey],
  [sql`was_sent_at`, sql`timestamptz[]`, ({ order }) => order.was.firstSentAt],
  [sql`status`, sql`text[]`, ({ status }) => status],
  [sql`error`, sql`text[]`, ({ error }) => (error === null ? null : cleanText(error, 4000))],
  [sql`reason`, sql`text[]`, ({ reason }) => (reason === null ? null : cleanText(reason, 1000))],
  [sql`delay_ms`, sql`float8[]`, ({ delayMs }) => delayMs],
  [sql`costs`, sql`int[]`, ({ costs }) => costs],
  [sql`in_doubt`, sql`boolean[]`, ({ inDoubt }) => inDoubt],
  [sql`is_unsent`, sql`boolean[]`, ({ isUnsent }) => isUnsent],
];

function endOf(order: ClaimedOrder, settlement: Settlement): End {
  const base = { order, error: null, reason: null, delayMs: 0, costs: 0, inDoubt: false, isUnsent: false };
  const asBefore = { ...base, status: order.was.status, isUnsent: true };
  switch (settlement.to) {
    case 'failed': {
      const { error, delayMs, inDoubt, costsRetry } = settlement;
      return { ...base, status: 'failed', error, delayMs, inDoubt, costs: costsRetry ? 1 : 0 };
    }
    case 'dead':
      return { ...base, status: 'dead', error: settlement.error, inDoubt: settlement.inDoubt };
    case 'unsendable':
      return { ...base, status: 'dead', error: settlement.error, isUnsent: true };
    case 'released':
      return { ...asBefore, reason: settlement.reason, delayMs: settlement.delayMs };
    case 'known':
    case 'sent':
      // The ledger decides; if it did not, the order would go round once more, unsent.
      return { ...asBefore, reason: 'nothing was sent' };
  }
}

function expiry(ttlMs: number): Sql {
  return sql`clock_timestamp() + ${ttlMs} * interval '1 millisecond'`;
}

function responseOf({ settlement: { answer } }: Success): string {
  const outsideId = answer.outsideId === null ? null : cleanText(answer.outsideId, 255);
  return JSON.stringify({ status: answer.status, digest: answer.digest, broker_order_id: outsideId });
}

function outsideIdOf({ answer }: Success['settlement']): string | null {
  return answer.outsideId === null ? null : cleanText(answer.outsideId, 255);
}

/** Why rows did not match: settled by us before, or taken from us. */
async function explain(
  deps: SettleDeps,
  unmatched: readonly Attempt[],
  settled: Map<bigint, Status | null>,
): Promise<void> {
  const rows = await deps.db.query<SettledRow & { is_ours: boolean }>(sql`
    SELECT t.id, t.status, t.lease_epoch = held.epoch AND t.status <> 'sending' AS is_ours
    FROM unnest(${unmatched.map(({ order }) => order.id)}::bigint[],
                ${unmatched.map(({ order }) => order.lease.epoch)}::bigint[]) AS held (id, epoch)
    JOIN outbox.outbox_orders t ON t.id = held.id`);
  const ours = new Set(rows.filter(({ is_ours }) => is_ours).map(({ id }) => id));
  for (const { id, status } of rows) if (ours.has(id)) settled.set(id, status);
  const stale = unmatched.filter(({ order }) => !ours.has(order.id));
  if (stale.length === 0) return;
  for (const attempt of stale) {
    settled.set(attempt.order.id, null);
    if (isSuccess(attempt)) await noteLateSuccess(deps, lateSuccessOf(attempt));
  }
  deps.worker.onStale(orders.slice, stale.length);
}

function lateSuccessOf({ order, settlement }: Success): LateSuccess {
  return {
    id: order.id,
    idempotencyKey: order.idempotencyKey,
    lanes: laneOf(order),
    epoch: order.lease.epoch,
    response: responseOf({ order, settlement }),
    digest: settlement.answer.digest,
    outsideId: outsideIdOf(settlement),
  };
}
