import { MAX_JSON_BYTES } from '../../kernel/json-extent.ts';
import type { Lease } from '../../kernel/lease.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { claim, type Worker } from '../../platform/work/work.ts';
import { hasPredecessor, isUnfinished, orders, tryLockLanes, type Lane } from '../orders-table.ts';
import type { OutgoingOrder } from './senders/port.ts';

export type ClaimDeps = Readonly<{ db: Database; worker: Worker; leaseMs: number }>;

export type ClaimedOrder = OutgoingOrder &
  Readonly<{
    destination: string;
    lease: Lease;
    retryCount: number;
    /** Time since the first send, by the database's clock at the claim; null before the first send. */
    ageMs: number | null;
    /** When it was claimed, on the monotonic clock. */
    claimedAtMs: number;
    /** Time since it was created, by the database's clock at the claim. */
    createdForMs: number;
    inDoubt: boolean;
    /** Its state before the claim, which releasing it unsent restores. */
    was: Readonly<{ status: 'queued' | 'failed'; firstSentAt: string | null }>;
  }>;

/** A position in the order of claims. */
export type ClaimPosition = Readonly<{ nextAttemptAt: string; id: bigint }>;

/**
 * `unordered` and `ordered`: without and with an ordering key. `solo`: an order whose last worker was lost and that
 * has one attempt left.
 */
export type ClaimKind = 'unordered' | 'ordered' | 'solo';

export type ClaimOptions = Readonly<{
  destination: string;
  kind: ClaimKind;
  limit: number;
  /** Limit for the size of all requests together; one order is claimed in any case. */
  bytes: number;
  retryMax: number;
  /** Claims only orders after this position. */
  after: ClaimPosition | null;
}>;

export type ClaimResult = Readonly<{
  orders: readonly ClaimedOrder[];
  last: ClaimPosition | null;
  /** There may be more due orders. */
  isFull: boolean;
  /** Ordering keys with due orders that must wait for an earlier one; `blockOrders` takes these out of the claim. */
  crowdedKeys: readonly string[];
}>;

/** Claims due orders of one destination. */
export async function claimOrders(deps: ClaimDeps, options: ClaimOptions): Promise<ClaimResult> {
  const { limit, bytes } = options;
  if (options.kind !== 'ordered') return claimWhere(deps, { where: isDue(options), limit, bytes });
  const candidates = await selectOrdered(deps.db, options);
  const looked = { last: lastOf(candidates), isFull: candidates.length === limit };
  const behind = candidates.filter((candidate) => candidate.has_predecessor);
  const crowdedKeys = [...new Set(behind.map((candidate) => candidate.ordering_key))];
  const first = candidates.filter((candidate) => !candidate.has_predecessor).map(({ id }) => id);
  if (first.length === 0) return { orders: [], ...looked, crowdedKeys };
  const { orders: claimed, last } = await claimWhere(deps, {
    where: sql`${isDue(options)} AND t.id = ANY(${first}::bigint[]) AND NOT ${hasPredecessor(sql`t`)}`,
    limit,
    bytes,
  });
  // If not all fitted, the next claim starts with the rest.
  const hasMore = claimed.length > 0 && claimed.length < first.length;
  return { orders: claimed, ...(hasMore ? { last, isFull: true } : looked), crowdedKeys };
}

const probeCandidates = 1000;

/**
 * Claims the order that probes an open circuit: among the oldest due ones the one with the fewest retries, and not
 * `notId` if there is another. Never a solo order, which may take the process down.
 */
export async function claimProbe(
  deps: ClaimDeps,
  { destination, notId, retryMax }: Readonly<{ destination: string; notId: bigint | null; retryMax: number }>,
): Promise<ClaimedOrder | null> {
  const due = sql`t.destination = ${destination} AND t.status IN ('queued', 'failed') AND t.next_attempt_at <= now()
    AND NOT ${isSolo(retryMax)}`;
  const oldest = (kind: Sql): Sql => sql`(
    SELECT t.* FROM outbox.outbox_orders t
    WHERE ${due} AND ${kind} ORDER BY t.next_attempt_at, t.id LIMIT ${probeCandidates})`;
  const [candidate] = await deps.db.query<{ id: bigint }>(sql`
    SELECT t.id
    FROM (${oldest(sql`t.ordering_key IS NULL`)}
          UNION ALL ${oldest(sql`t.ordering_key IS NOT NULL AND NOT t.held`)}) AS t
    WHERE t.ordering_key IS NULL OR NOT ${hasPredecessor(sql`t`)}
    ORDER BY t.id IS NOT DISTINCT FROM ${notId}::bigint, t.retry_count, t.id
    LIMIT 1`);
  if (candidate === undefined) return null;
  const { orders: claimed } = await claimWhere(deps, {
    where: sql`t.id = ${candidate.id} AND ${due} AND NOT ${hasPredecessor(sql`t`)}`,
    orderBy: sql`t.id`,
    limit: 1,
    bytes: 1,
  });
  return claimed[0] ?? null;
}

function isSolo(retryMax: number): Sql {
  return sql`(t.lease_lost AND t.retry_count >= ${retryMax})`;
}

function isDue({ destination, kind, retryMax, after }: ClaimOptions): Sql {
  const due = sql`t.destination = ${destination} AND t.status IN ('queued', 'failed') AND t.next_attempt_at <= now()`;
  if (kind === 'solo')
    return sql`${due} AND t.status = 'failed' AND ${isSolo(retryMax)} AND NOT t.held AND NOT ${hasPredecessor(sql`t`)}`;
  const isOfKind =
    kind === 'unordered' ? sql`t.ordering_key IS NULL` : sql`t.ordering_key IS NOT NULL AND NOT t.held`;
  const isAfter =
    after === null
      ? sql`true`
      : sql`(t.next_attempt_at, t.id) > (${after.nextAttemptAt}::timestamptz, ${after.id}::bigint)`;
  return sql`${due} AND ${isOfKind} AND ${isAfter} AND NOT ${isSolo(retryMax)}`;
}

type Candidate = Readonly<{ id: bigint; ordering_key: string; has_predecessor: boolean; due_at: string }>;

/** The due orders with an ordering key, and which of them must wait for an earlier one. */
async function selectOrdered(db: Queryable, options: ClaimOptions): Promise<readonly Candidate[]> {
  return db.query<Candidate>(sql`
    SELECT t.id, t.ordering_key, t.next_attempt_at::text AS due_at, ${hasPredecessor(sql`t`)} AS has_predecessor
    FROM outbox.outbox_orders t
    WHERE ${isDue(options)}
    ORDER BY t.next_attempt_at, t.id
    LIMIT ${options.limit}`);
}

type ClaimedRow = Readonly<{
  id: bigint;
  idempotency_key: string;
  /** Empty if it is too large to be sent. */
  request: string;
  ordering_key: string | null;
  destination: string;
  trace_id: string | null;
  traceparent: string | null;
  retry_count: number;
  in_doubt: boolean;
  age_ms: number | null;
  created_for_ms: number;
  was_status: 'queued' | 'failed';
  was_first_sent_at: string | null;
  due_at: string;
  /** How many orders were due within the limit, including those that did not fit the byte limit. */
  due_count: bigint;
}>;

async function claimWhere(
  { worker, leaseMs }: ClaimDeps,
  claiming: Readonly<{ where: Sql; orderBy?: Sql; limit: number; bytes: number }>,
): Promise<ClaimResult> {
  const { lease, rows } = await claim<ClaimedRow>(worker, orders, {
    where: claiming.where,
    orderBy: claiming.orderBy ?? sql`t.next_attempt_at, t.id`,
    limit: claiming.limit,
    leaseMs,
    fit: { bytes: sql`platform.json_bytes(t.request_json)`, most: claiming.bytes },
    was: sql`, t.status AS was_status, t.first_sent_at AS was_first_sent_at`,
    set: sql`status = 'sending', first_sent_at = COALESCE(t.first_sent_at, now()), updated_at = clock_timestamp()`,
    returning: sql`
      t.id, t.idempotency_key, t.ordering_key, t.destination, t.trace_id, t.traceparent,
      CASE WHEN picked.bytes <= ${MAX_JSON_BYTES} THEN t.request_json::text ELSE '' END AS request,
      (SELECT count(*) FROM due) AS due_count,
      t.retry_count, t.in_doubt, t.next_attempt_at,
      (date_part('epoch', now() - picked.was_first_sent_at) * 1000)::float8 AS age_ms,
      GREATEST(date_part('epoch', clock_timestamp() - t.created_at) * 1000, 0) AS created_for_ms,
      picked.was_status, picked.was_first_sent_at::text, t.next_attempt_at::text AS due_at`,
    also: auditOfClaim(worker.owner),
    rowOrder: sql`next_attempt_at, id`,
  });
  const claimedAtMs = lease.endsAtMs - leaseMs;
  return {
    orders: rows.map((row) => orderOf(row, lease, claimedAtMs)),
    last: lastOf(rows),
    isFull: rows.length === claiming.limit || rows.length < (rows[0]?.due_count ?? 0n),
    crowdedKeys: [],
  };
}

/** The audit log shows a retry in two steps: failed to queued, queued to sending. */
function auditOfClaim(owner: string): Sql {
  return sql`, noted AS (
    INSERT INTO outbox.outbox_audit
      (outbox_id, status_from, status_to, retry_count, idempotency_key, trace_id, lease_epoch, actor)
    SELECT c.id, step.status_from, step.status_to, c.retry_count, c.idempotency_key, c.trace_id, c.claim_epoch, ${owner}
    FROM claimed c
    JOIN (VALUES (1, 'failed', 'queued'), (2, 'queued', 'sending')) AS step (no, status_from, status_to)
      ON step.no = 2 OR c.was_status = 'failed'
    ORDER BY c.id, step.no
  )`;
}

function lastOf(rows: readonly Readonly<{ id: bigint; due_at: string }>[]): ClaimPosition | null {
  const last = rows.at(-1);
  return last === undefined ? null : { nextAttemptAt: last.due_at, id: last.id };
}

function orderOf(row: ClaimedRow, lease: Lease, claimedAtMs: number): ClaimedOrder {
  return {
    id: row.id,
    idempotencyKey: row.idempotency_key,
    destination: row.destination,
    request: row.request,
    orderingKey: row.ordering_key,
    traceId: row.trace_id,
    traceparent: row.traceparent,
    lease,
    retryCount: row.retry_count,
    ageMs: row.age_ms,
    claimedAtMs,
    createdForMs: row.created_for_ms,
    inDoubt: row.in_doubt,
    was: { status: row.was_status, firstSentAt: row.was_first_sent_at },
  };
}

/** How many orders are blocked at once; the next round blocks more. */
const blockLimit = 5000;

/**
 * Blocks all orders of these keys that must wait for an earlier one, so that claims no longer read them: a million of
 * them cost one update each and nothing after that, however long the first one takes. `unblockNext` unblocks them.
 */
export async function blockOrders(
  db: Database,
  destination: string,
  orderingKeys: readonly string[],
): Promise<void> {
  await db.transaction(async (tx) => {
    const lanes = orderingKeys.map((orderingKey): Lane => ({ destination, orderingKey }));
    const locked = await tryLockLanes(tx, lanes);
    if (locked.length === 0) return;
    const isOfLane = sql`o.destination = ${destination} AND o.ordering_key = lane.ordering_key AND ${isUnfinished(sql`o`)}`;
    await tx.query(sql`
      UPDATE outbox.outbox_orders t SET held = true
      FROM (
        SELECT waiting.id
        FROM unnest(${locked.map(({ orderingKey }) => orderingKey)}::text[]) AS lane (ordering_key)
        CROSS JOIN LATERAL (
          SELECT o.ordering_seq FROM outbox.outbox_orders o WHERE ${isOfLane} ORDER BY o.ordering_seq LIMIT 1
        ) AS first
        CROSS JOIN LATERAL (
          SELECT o.id FROM outbox.outbox_orders o
          WHERE ${isOfLane} AND o.ordering_seq > first.ordering_seq AND NOT o.held AND o.status IN ('queued', 'failed')
          ORDER BY o.ordering_seq
          LIMIT ${blockLimit}
        ) AS waiting
        LIMIT ${blockLimit}
      ) AS behind
      WHERE t.id = behind.id AND NOT t.held AND t.status IN ('queued', 'failed')`);
  });
}

/** Milliseconds until the next order of the destination is due, less than 0 where one is; null where none waits. */
export async function nextDueInMs(db: Queryable, destination: string): Promise<number | null> {
  const first = (lane: Sql): Sql => sql`(
    SELECT t.next_attempt_at FROM outbox.outbox_orders t
    WHERE t.destination = ${destination} AND t.status IN ('queued', 'failed') AND ${lane}
    ORDER BY t.next_attempt_at, t.id LIMIT 1)`;
  const [row] = await db.query<{ due_in_ms: number }>(sql`
    WITH next AS (
      SELECT LEAST(
        ${first(sql`t.ordering_key IS NULL`)},
        ${first(sql`t.ordering_key IS NOT NULL AND NOT t.held`)}) AS due_at
    )
    SELECT date_part('epoch', LEAST(due_at, now() + interval '1 day') - clock_timestamp()) * 1000 AS due_in_ms
    FROM next WHERE due_at IS NOT NULL`);
  return row?.due_in_ms ?? null;
}
