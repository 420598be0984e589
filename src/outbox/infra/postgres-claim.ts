import type { Lease } from '../../kernel/lease.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { claim, type Worker } from '../../platform/postgres/work.ts';
import type { ClaimedOrder, ClaimOptions, ClaimResult, LowWater } from '../usecase/ports.ts';
import { holdsItsKey, isBehindAnother, orders, tryLockLanes, type Lane } from './orders-table.ts';

type ClaimedRow = Readonly<{
  id: bigint;
  idempotency_key: string;
  request: string;
  ordering_key: string | null;
  destination: string;
  trace_id: string | null;
  traceparent: string | null;
  retry_count: number;
  in_doubt: boolean;
  age_ms: number | null;
  was_status: 'queued' | 'failed';
  was_first_sent_at: string | null;
  due_at: string;
}>;

type Claiming = Readonly<{ where: Sql; orderBy?: Sql; limit: number; leaseMs: number }>;

/** Takes due orders of one destination from one of its lanes. */
export async function claimOrders(
  db: Database,
  worker: Worker,
  options: ClaimOptions & Readonly<{ leaseMs: number }>,
): Promise<ClaimResult> {
  const { limit, leaseMs } = options;
  if (options.lane !== 'keyed') return claimWhere(worker, { where: dueInLane(options), limit, leaseMs });
  const candidates = await peekKeyed(db, options);
  const looked = { last: lastOf(candidates), isFull: candidates.length === limit };
  const behind = candidates.filter((candidate) => candidate.is_behind);
  const crowded = [...new Set(behind.map((candidate) => candidate.ordering_key))];
  const first = candidates.filter((candidate) => !candidate.is_behind).map(({ id }) => id);
  if (first.length === 0) return { orders: [], ...looked, crowded };
  const { orders: claimed } = await claimWhere(worker, {
    where: sql`${dueInLane(options)} AND t.id = ANY(${first}::bigint[]) AND NOT ${isBehindAnother(sql`t`)}`,
    limit,
    leaseMs,
  });
  return { orders: claimed, ...looked, crowded };
}

/** The order that a probe sends: of the oldest due ones the one with the fewest retries; none that has to run alone. */
export async function claimProbe(
  worker: Worker,
  {
    destination,
    notId,
    retryMax,
    leaseMs,
  }: Readonly<{ destination: string; notId: bigint | null; retryMax: number; leaseMs: number }>,
): Promise<ClaimedOrder | null> {
  const due = sql`t.destination = ${destination} AND t.status IN ('queued', 'failed') AND t.next_attempt_at <= now()
    AND NOT (t.lease_lost AND t.retry_count >= ${retryMax})`;
  const oldest = (lane: Sql): Sql => sql`(
    SELECT t.* FROM outbox.outbox_orders t
    WHERE ${due} AND ${lane} ORDER BY t.next_attempt_at, t.id LIMIT ${probeCandidates})`;
  const rows = await worker.db.query<{ id: bigint }>(sql`
    SELECT t.id
    FROM (${oldest(sql`t.ordering_key IS NULL`)}
          UNION ALL ${oldest(sql`t.ordering_key IS NOT NULL AND NOT t.held`)}) AS t
    WHERE t.ordering_key IS NULL OR NOT ${isBehindAnother(sql`t`)}
    ORDER BY t.id IS NOT DISTINCT FROM ${notId}::bigint, t.retry_count, t.id
    LIMIT 1`);
  const [candidate] = rows;
  if (candidate === undefined) return null;
  const claimed = await claimWhere(worker, {
    where: sql`t.id = ${candidate.id} AND ${due} AND NOT ${isBehindAnother(sql`t`)}`,
    orderBy: sql`t.id`,
    limit: 1,
    leaseMs,
  });
  return claimed.orders[0] ?? null;
}

const probeCandidates = 1000;

async function claimWhere(worker: Worker, claiming: Claiming): Promise<ClaimResult> {
  const { lease, rows } = await claim<ClaimedRow>(worker, orders, {
    where: claiming.where,
    orderBy: claiming.orderBy ?? sql`t.next_attempt_at, t.id`,
    limit: claiming.limit,
    leaseMs: claiming.leaseMs,
    was: sql`, t.status AS was_status, t.first_sent_at AS was_first_sent_at`,
    set: sql`status = 'sending', first_sent_at = COALESCE(t.first_sent_at, now()), updated_at = clock_timestamp()`,
    returning: sql`
      t.id, t.idempotency_key, t.request_json::text AS request, t.ordering_key, t.destination, t.trace_id,
      t.traceparent, t.retry_count, t.in_doubt, t.next_attempt_at,
      (date_part('epoch', now() - picked.was_first_sent_at) * 1000)::float8 AS age_ms,
      picked.was_status, picked.was_first_sent_at::text, t.next_attempt_at::text AS due_at`,
    also: auditOfClaim(worker.owner),
    rowOrder: sql`next_attempt_at, id`,
  });
  const claimedAtMs = lease.endsAtMs - claiming.leaseMs;
  return {
    orders: rows.map((row) => orderOf(row, lease, claimedAtMs)),
    last: lastOf(rows),
    isFull: rows.length === claiming.limit,
    crowded: [],
  };
}

/** A retry is told as what it is: failed, queued again, sending. */
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

function dueInLane({ destination, lane, retryMax, after }: ClaimOptions): Sql {
  const due = sql`t.destination = ${destination} AND t.status IN ('queued', 'failed') AND t.next_attempt_at <= now()`;
  const isLast = sql`t.lease_lost AND t.retry_count >= ${retryMax}`;
  if (lane === 'alone')
    return sql`${due} AND t.status = 'failed' AND ${isLast} AND NOT t.held AND NOT ${isBehindAnother(sql`t`)}`;
  const inLane =
    lane === 'free' ? sql`t.ordering_key IS NULL` : sql`t.ordering_key IS NOT NULL AND NOT t.held`;
  const fromHere =
    after === null
      ? sql`true`
      : sql`(t.next_attempt_at, t.id) > (${after.nextAttemptAt}::timestamptz, ${after.id}::bigint)`;
  return sql`${due} AND ${inLane} AND ${fromHere} AND NOT (${isLast})`;
}

type Candidate = Readonly<{ id: bigint; ordering_key: string; is_behind: boolean; due_at: string }>;

/** Who would be next, and who of them is behind another of its key. */
async function peekKeyed(db: Queryable, options: ClaimOptions): Promise<readonly Candidate[]> {
  return db.query<Candidate>(sql`
    SELECT t.id, t.ordering_key, t.next_attempt_at::text AS due_at, ${isBehindAnother(sql`t`)} AS is_behind
    FROM outbox.outbox_orders t
    WHERE ${dueInLane(options)}
    ORDER BY t.next_attempt_at, t.id
    LIMIT ${options.limit}`);
}

/** As many as are held back at once; the rest follows in the next round. */
const heldAtOnce = 5000;

/**
 * Takes what is behind another of its key out of the claim's sight, all of a key at once: a million of them cost
 * each of them one update, and then nothing, however long the first one takes.
 */
export async function holdBack(
  db: Database,
  destination: string,
  orderingKeys: readonly string[],
): Promise<void> {
  await db.transaction(async (tx) => {
    const locked = await tryLockLanes(
      tx,
      orderingKeys.map((orderingKey): Lane => ({ destination, orderingKey })),
    );
    if (locked.length === 0) return;
    const ofLane = sql`o.destination = ${destination} AND o.ordering_key = lane.ordering_key AND ${holdsItsKey(sql`o`)}`;
    await tx.query(sql`
      UPDATE outbox.outbox_orders t SET held = true
      FROM (
        SELECT waiting.id
        FROM unnest(${locked.map(({ orderingKey }) => orderingKey)}::text[]) AS lane (ordering_key)
        CROSS JOIN LATERAL (
          SELECT o.ordering_seq FROM outbox.outbox_orders o WHERE ${ofLane} ORDER BY o.ordering_seq LIMIT 1
        ) AS first
        CROSS JOIN LATERAL (
          SELECT o.id FROM outbox.outbox_orders o
          WHERE ${ofLane} AND o.ordering_seq > first.ordering_seq AND NOT o.held AND o.status IN ('queued', 'failed')
          ORDER BY o.ordering_seq
          LIMIT ${heldAtOnce}
        ) AS waiting
        LIMIT ${heldAtOnce}
      ) AS behind
      WHERE t.id = behind.id AND NOT t.held AND t.status IN ('queued', 'failed')`);
  });
}

function lastOf(rows: readonly Readonly<{ id: bigint; due_at: string }>[]): LowWater | null {
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
    inDoubt: row.in_doubt,
    was: { status: row.was_status, firstSentAt: row.was_first_sent_at },
  };
}
