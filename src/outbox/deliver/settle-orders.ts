import { cleanText } from '../../kernel/text.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { unnestRows, type Column } from '../../platform/postgres/unnest-rows.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { storeBatch } from '../../platform/work/store-batch.ts';
import { settle, type Worker } from '../../platform/work/work.ts';
import { errorFingerprint } from '../domain/error-fingerprint.ts';
import type { Settlement, Status } from '../domain/order.ts';
import {
  hasSucceeded,
  laneOf,
  lockLanes,
  lockLedger,
  notifyDead,
  orders,
  unblockNext,
} from '../orders-table.ts';
import type { AttemptResult } from './attempt.ts';
import type { ClaimedOrder } from './claim-orders.ts';
import { recordLateSuccess, type LateSuccess } from './record-late-success.ts';

export type SettleDeps = Readonly<{
  db: Database;
  worker: Worker;
  ledgerTtlMs: number;
  onSettleRetry: (error: unknown) => void;
}>;

/** An attempt that has ended and is to be stored. */
export type EndedAttempt = Pick<AttemptResult, 'order' | 'settlement'>;

/** The status of the order after the settle; null if its lease had been lost. */
export type SettledOrder = Readonly<{ id: bigint; status: Status | null }>;

/** Settles a batch. Retries until `until` aborts; an answer that PostgreSQL rejects is settled without its text. */
export async function settleOrders(
  deps: SettleDeps,
  attempts: readonly EndedAttempt[],
  until: AbortSignal,
): Promise<readonly SettledOrder[]> {
  const settled: SettledOrder[] = [];
  const store = async (items: readonly EndedAttempt[]): Promise<void> => {
    settled.push(...(await settleOnce(deps, items)));
  };
  await storeBatch(
    attempts.toSorted((a, b) => (a.order.id < b.order.id ? -1 : 1)),
    {
      store,
      storeBad: ({ order, settlement }) => store([{ order, settlement: withoutText(settlement) }]),
      until,
      onRetry: deps.onSettleRetry,
    },
  );
  return settled;
}

function withoutText(settlement: Settlement): Settlement {
  switch (settlement.to) {
    case 'sent':
      return { ...settlement, answer: { ...settlement.answer, outsideId: null } };
    case 'failed':
    case 'dead':
    case 'unsendable':
      return { ...settlement, error: 'UNKNOWN: the error text could not be stored' };
    case 'released':
      return { ...settlement, reason: 'the reason could not be stored' };
    case 'known':
      return settlement;
  }
}

type SettledRow = Readonly<{ id: bigint; status: Status }>;

/**
 * Settles attempts of any number of claims. Successes take one statement for order, ledger and audit log. For every
 * other result the ledger is locked first and read in a later statement, because a late success of an earlier attempt
 * may have been recorded in the meantime; then the order becomes sent, whatever this attempt resulted in.
 *
 * Safe to repeat after a lost answer: a row that already has the result of this claim counts as settled. Any other row
 * that does not match has lost its lease. Then a success is still recorded, and other results are dropped as stale.
 */
async function settleOnce(
  deps: SettleDeps,
  attempts: readonly EndedAttempt[],
): Promise<readonly SettledOrder[]> {
  const successes = attempts.filter(isSuccess);
  const others = attempts.filter((attempt) => !isSuccess(attempt));
  const unordered = successes.filter(({ order }) => order.orderingKey === null);
  const ordered = successes.filter(({ order }) => order.orderingKey !== null);
  const rows: SettledRow[] = [];
  if (unordered.length > 0) rows.push(...(await settleSent(deps, deps.db, unordered)));
  if (ordered.length > 0)
    rows.push(...(await withLanes(deps.db, ordered, (tx) => settleSent(deps, tx, ordered))));
  if (others.length > 0) {
    const keys = others.map(({ order }) => order.idempotencyKey);
    const settleLocked = async (tx: Queryable): Promise<readonly SettledRow[]> => {
      await lockLedger(tx, keys);
      return settleUnsent(deps, tx, others);
    };
    rows.push(...(await withLanes(deps.db, others, settleLocked)));
  }
  const statuses = new Map(rows.map(({ id, status }) => [id, status]));
  const unmatched = attempts.filter(({ order }) => !statuses.has(order.id));
  const earlier = await explainUnmatched(deps, unmatched);
  return attempts.map(({ order: { id } }) => ({ id, status: statuses.get(id) ?? earlier.get(id) ?? null }));
}

type Success = EndedAttempt & Readonly<{ settlement: Extract<Settlement, { to: 'sent' }> }>;

function isSuccess(attempt: EndedAttempt): attempt is Success {
  return attempt.settlement.to === 'sent';
}

/** Settles with the ordering lanes locked, and unblocks the next order of each lane in which one became sent. */
async function withLanes(
  db: Database,
  attempts: readonly EndedAttempt[],
  work: (tx: Queryable) => Promise<readonly SettledRow[]>,
): Promise<readonly SettledRow[]> {
  return db.transaction(async (tx) => {
    await lockLanes(
      tx,
      attempts.flatMap(({ order }) => laneOf(order)),
    );
    const rows = await work(tx);
    const sent = new Set(rows.filter(({ status }) => status === 'sent').map(({ id }) => id));
    await unblockNext(
      tx,
      attempts.filter(({ order }) => sent.has(order.id)).flatMap(({ order }) => laneOf(order)),
    );
    return rows;
  });
}

const returning: Sql = sql`
  t.id, t.status, t.destination, t.idempotency_key, t.retry_count, t.last_error, t.trace_id, t.lease_epoch`;

async function settleSent(
  { worker, ledgerTtlMs }: SettleDeps,
  tx: Queryable,
  attempts: readonly Success[],
): Promise<readonly SettledRow[]> {
  const rows = unnestRows(sql`attempt`, attempts, [
    [sql`key`, sql`bigint[]`, ({ order }) => order.id],
    [sql`epoch`, sql`bigint[]`, ({ order }) => order.lease.epoch],
    [sql`response`, sql`jsonb[]`, responseOf],
    [sql`digest`, sql`text[]`, ({ settlement }) => settlement.answer.digest],
    [sql`outside_id`, sql`text[]`, outsideIdOf],
    [sql`error`, sql`text[]`, ({ settlement }) => (settlement.isConflict ? conflictText : null)],
  ]);
  return settle<SettledRow>(
    tx,
    { slice: orders.slice, count: attempts.length },
    sql`
    WITH settled AS (
      UPDATE outbox.outbox_orders t
      SET status = 'sent', response = attempt.response, last_error = attempt.error, fingerprint = NULL,
          updated_at = clock_timestamp(), lease_owner = NULL, lease_until = NULL, lease_lost = false
      FROM ${rows}
      WHERE t.id = attempt.key AND t.lease_epoch = attempt.epoch AND (t.status = 'sending') IS TRUE
      RETURNING ${returning}, attempt.digest, attempt.outside_id
    ), entered AS (
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
    )
    SELECT id, status FROM settled`,
  );
}

const conflictText = 'CONFLICT_PROCESSED: the destination had processed it before';

/** Everything but a success of this attempt. The statement before it has locked the ledger rows. */
async function settleUnsent(
  { worker, ledgerTtlMs }: SettleDeps,
  tx: Queryable,
  attempts: readonly EndedAttempt[],
): Promise<readonly SettledRow[]> {
  const changes = attempts.map(({ order, settlement }) => changeOf(order, settlement));
  return settle<SettledRow>(
    tx,
    { slice: orders.slice, count: attempts.length },
    sql`
    WITH settled AS (
      UPDATE outbox.outbox_orders t
      SET status = CASE WHEN attempt.is_done THEN 'sent' ELSE attempt.status END,
          last_error = CASE WHEN attempt.is_done THEN NULL ELSE COALESCE(attempt.error, t.last_error) END,
          fingerprint = CASE WHEN attempt.is_done THEN NULL WHEN attempt.error IS NULL THEN t.fingerprint
                             ELSE attempt.fingerprint END,
          retry_count = t.retry_count + CASE WHEN attempt.is_done THEN 0 ELSE attempt.costs END,
          next_attempt_at = CASE WHEN attempt.is_done OR attempt.status = 'dead' THEN t.next_attempt_at
                                 ELSE clock_timestamp() + attempt.delay_ms * interval '1 millisecond' END,
          first_sent_at = CASE WHEN attempt.is_unsent THEN attempt.was_sent_at ELSE t.first_sent_at END,
          in_doubt = t.in_doubt OR attempt.in_doubt,
          updated_at = clock_timestamp(),
          lease_owner = NULL, lease_until = NULL, lease_lost = t.lease_lost AND attempt.reason IS NOT NULL
      FROM (
        SELECT change.*, ${hasSucceeded(sql`change.idempotency_key`)} AS is_done
        FROM ${unnestRows(sql`change`, changes, changeColumns)}
      ) AS attempt
      WHERE t.id = attempt.key AND t.lease_epoch = attempt.epoch AND (t.status = 'sending') IS TRUE
      RETURNING ${returning}, attempt.reason, attempt.is_done
    ), entered AS (
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
             trace_id, lease_epoch, ${worker.owner},
             CASE WHEN is_done THEN 'the ledger records its effect' ELSE reason END
      FROM settled
    )${notifyDead(sql`settled`)}
    SELECT id, status FROM settled`,
  );
}

type Change = Readonly<{
  order: ClaimedOrder;
  status: Status;
  error: string | null;
  /** Why the order is released; null if it was sent. */
  reason: string | null;
  delayMs: number;
  /** Retries that the attempt costs. */
  costs: number;
  inDoubt: boolean;
  /** Nothing was sent in this attempt, so the time of the first send is restored. */
  isUnsent: boolean;
}>;

const changeColumns: readonly Column<Change>[] = [
  [sql`key`, sql`bigint[]`, ({ order }) => order.id],
  [sql`epoch`, sql`bigint[]`, ({ order }) => order.lease.epoch],
  [sql`idempotency_key`, sql`text[]`, ({ order }) => order.idempotencyKey],
  [sql`was_sent_at`, sql`timestamptz[]`, ({ order }) => order.was.firstSentAt],
  [sql`status`, sql`text[]`, ({ status }) => status],
  [sql`error`, sql`text[]`, storedError],
  [sql`fingerprint`, sql`text[]`, fingerprintOf],
  [sql`reason`, sql`text[]`, ({ reason }) => (reason === null ? null : cleanText(reason, 1000))],
  [sql`delay_ms`, sql`float8[]`, ({ delayMs }) => delayMs],
  [sql`costs`, sql`int[]`, ({ costs }) => costs],
  [sql`in_doubt`, sql`boolean[]`, ({ inDoubt }) => inDoubt],
  [sql`is_unsent`, sql`boolean[]`, ({ isUnsent }) => isUnsent],
];

function storedError({ error }: Change): string | null {
  return error === null ? null : cleanText(error, 4000);
}

function fingerprintOf(change: Change): string | null {
  const error = storedError(change);
  return error === null ? null : errorFingerprint(error);
}

function changeOf(order: ClaimedOrder, settlement: Settlement): Change {
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
      // The statement reads the ledger, which records the effect. If it did not, the order would be released.
      return { ...asBefore, reason: 'not sent' };
  }
}

function expiry(ttlMs: number): Sql {
  return sql`clock_timestamp() + ${ttlMs} * interval '1 millisecond'`;
}

function responseOf(success: Success): string {
  const { status, digest } = success.settlement.answer;
  return JSON.stringify({ status, digest, broker_order_id: outsideIdOf(success) });
}

function outsideIdOf({ settlement: { answer } }: Success): string | null {
  return answer.outsideId === null ? null : cleanText(answer.outsideId, 255);
}

/**
 * Finds out why rows did not match. Returns the statuses of those that an earlier try has settled. The others are
 * stale: their lease was lost.
 */
async function explainUnmatched(
  deps: SettleDeps,
  unmatched: readonly EndedAttempt[],
): Promise<ReadonlyMap<bigint, Status>> {
  if (unmatched.length === 0) return new Map();
  const rows = await deps.db.query<SettledRow>(sql`
    SELECT t.id, t.status
    FROM unnest(${unmatched.map(({ order }) => order.id)}::bigint[],
                ${unmatched.map(({ order }) => order.lease.epoch)}::bigint[]) AS claimed (id, epoch)
    JOIN outbox.outbox_orders t ON t.id = claimed.id
    WHERE t.lease_epoch = claimed.epoch AND t.status <> 'sending'`);
  const settled = new Map(rows.map(({ id, status }) => [id, status]));
  const stale = unmatched.filter(({ order }) => !settled.has(order.id));
  for (const attempt of stale) if (isSuccess(attempt)) await recordLateSuccess(deps, lateSuccessOf(attempt));
  if (stale.length > 0) deps.worker.onStale(orders.slice, stale.length);
  return settled;
}

function lateSuccessOf(success: Success): LateSuccess {
  const { order, settlement } = success;
  return {
    id: order.id,
    idempotencyKey: order.idempotencyKey,
    lanes: laneOf(order),
    epoch: order.lease.epoch,
    response: responseOf(success),
    digest: settlement.answer.digest,
    outsideId: outsideIdOf(success),
  };
}
