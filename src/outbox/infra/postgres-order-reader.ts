import type { Queryable } from '../../platform/postgres/database.ts';
import { joinSql, sql, type Sql } from '../../platform/postgres/sql.ts';
import type { AuditEntry } from '../domain/attempts.ts';
import type { Resolution, Status } from '../domain/order.ts';
import type {
  Count,
  Keyset,
  LedgerEntry,
  Order,
  OrderFilter,
  OrderReader,
} from '../usecase/reading-ports.ts';
import { selectBacklogs } from './postgres-backlogs.ts';

/** Beyond this a total is an estimate: counting on would cost more than the answer is worth. */
const exactCountLimit = 10_000;
/** A list leaves larger requests out, so that a page of them cannot grow to a hundred megabytes. */
const listedRequestBytes = 65_536;
/** An order that is held off for days has a row for every time it was asked to come later; the newest are told. */
const auditLimit = 10_000;
/** A key that was used more often than this has told enough of its past. */
const usesLimit = 20;

export function createPostgresOrderReader(db: Queryable): OrderReader {
  return {
    async find(id) {
      const rows = await db.query<OrderRow>(sql`
        SELECT ${orderColumns}, ${wholeRequest}, NULL::timestamptz AS archived_at
        FROM outbox.outbox_orders t WHERE t.id = ${id}
        UNION ALL
        SELECT ${orderColumns}, ${wholeRequest}, t.archived_at
        FROM outbox.outbox_orders_archive t WHERE t.id = ${id}`);
      return rows[0] === undefined ? null : orderOf(rows[0]);
    },

    audit: (id) => selectAudit(db, id),

    async list(filter, { limit, offset, after }) {
      const order = isByTime(filter) ? byTime : byId;
      const rows = await db.query<OrderRow>(sql`
        WITH page AS MATERIALIZED (
          SELECT t.id FROM outbox.outbox_orders t
          WHERE ${conditions(filter)} AND ${isAfter(after)}
          ORDER BY ${order}
          LIMIT ${limit} OFFSET ${offset}
        )
        SELECT ${orderColumns}, ${listedRequest}, NULL::timestamptz AS archived_at
        FROM page JOIN outbox.outbox_orders t ON t.id = page.id
        ORDER BY ${order}`);
      return rows.map(orderOf);
    },

    count: (filter) => countMatching(db, filter),

    async replay(idempotencyKey, digest) {
      const rows = await db.query<{ id: bigint; answer: string }>(sql`
        SELECT outbox_id AS id, response_payload::text AS answer FROM outbox.idempo_ledger
        WHERE idempotency_key = ${idempotencyKey} AND request_digest = ${digest}`);
      return rows[0] ?? null;
    },

    uses: (idempotencyKey) => selectUses(db, idempotencyKey),
    backlogs: (destinations) => selectBacklogs(db, destinations),
  };
}

const byId: Sql = sql`t.id DESC`;
const byTime: Sql = sql`t.created_at DESC, t.id DESC`;

/** Ids and times of creation run nearly, but not exactly, alike; each list goes by what its index is ordered by. */
function isByTime({ createdFrom, createdTo }: OrderFilter): boolean {
  return createdFrom !== undefined || createdTo !== undefined;
}

function conditions(filter: OrderFilter): Sql {
  const { status, destination, idempotencyKey, createdFrom, createdTo, needsPerson } = filter;
  const all = [sql`true`];
  if (idempotencyKey !== undefined) all.push(sql`t.idempotency_key = ${idempotencyKey}`);
  if (destination !== undefined) all.push(sql`t.destination = ${destination}`);
  if (status !== undefined) all.push(sql`t.status = ${status}`);
  if (needsPerson !== undefined) all.push(sql`t.status = 'dead' AND t.resolution IS NULL`);
  if (createdFrom !== undefined) all.push(sql`t.created_at >= ${createdFrom}`);
  if (createdTo !== undefined) all.push(sql`t.created_at < ${createdTo}`);
  return joinSql(all, sql` AND `);
}

function isAfter(after: Keyset | null): Sql {
  if (after === null) return sql`true`;
  return after.createdAt === null
    ? sql`t.id < ${after.id}::bigint`
    : sql`(t.created_at, t.id) < (${after.createdAt}::timestamptz, ${after.id}::bigint)`;
}

/** In the order of the list, so that it goes by the same index and stops as early. */
async function countMatching(db: Queryable, filter: OrderFilter): Promise<Count> {
  const rows = await db.query<{ count: bigint }>(sql`
    SELECT count(*) AS count FROM (
      SELECT 1 FROM outbox.outbox_orders t WHERE ${conditions(filter)}
      ORDER BY ${isByTime(filter) ? byTime : byId}
      LIMIT ${exactCountLimit + 1}
    ) AS counted`);
  const count = Number(rows[0]?.count ?? 0n);
  if (count <= exactCountLimit) return { total: count, isEstimate: false };
  return { total: Math.max(await estimate(db, filter), count), isEstimate: true };
}

type Plan = readonly Readonly<{ Plan: Readonly<{ 'Plan Rows': number }> }>[];

/** What the planner thinks: from its statistics, without looking at a row. */
async function estimate(db: Queryable, filter: OrderFilter): Promise<number> {
  const rows = await db.query<{ 'QUERY PLAN': Plan }>(sql`
    EXPLAIN (FORMAT JSON) SELECT 1 FROM outbox.outbox_orders t WHERE ${conditions(filter)}`);
  return rows[0]?.['QUERY PLAN'][0]?.Plan['Plan Rows'] ?? 0;
}

const orderColumns: Sql = sql`
  t.id, t.idempotency_key, t.destination, t.ordering_key, t.ordering_seq, t.held, t.status, t.resolution, t.retry_count,
  t.next_attempt_at, t.first_sent_at, t.last_error, t.in_doubt, t.request_digest, t.response::text AS response_text,
  t.trace_id, t.traceparent, t.supersedes_id, t.created_at, t.updated_at,
  to_char(t.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS created_at_exact,
  CASE WHEN t.resolution = 'superseded' THEN COALESCE(
    (SELECT s.id FROM outbox.outbox_orders s WHERE s.supersedes_id = t.id),
    (SELECT s.id FROM outbox.outbox_orders_archive s WHERE s.supersedes_id = t.id)) END AS superseded_by_id`;

const wholeRequest: Sql = sql`t.request_json::text AS request_text`;

/** As long as it is when it is shown; the size of the column is what compression has made of it. */
const listedRequest: Sql = sql`
  CASE WHEN octet_length(t.request_json::text) <= ${listedRequestBytes} THEN t.request_json::text END AS request_text`;

type OrderRow = {
  id: bigint;
  idempotency_key: string;
  destination: string;
  ordering_key: string | null;
  ordering_seq: bigint | null;
  held: boolean;
  status: Status;
  resolution: Resolution | null;
  retry_count: number;
  next_attempt_at: Date;
  first_sent_at: Date | null;
  last_error: string | null;
  in_doubt: boolean;
  request_text: string | null;
  request_digest: string;
  response_text: string | null;
  trace_id: string | null;
  traceparent: string | null;
  supersedes_id: bigint | null;
  superseded_by_id: bigint | null;
  created_at: Date;
  created_at_exact: string;
  updated_at: Date;
  archived_at: Date | null;
};

function orderOf(row: OrderRow): Order {
  return {
    id: row.id,
    idempotencyKey: row.idempotency_key,
    destination: row.destination,
    orderingKey: row.ordering_key,
    orderingSeq: row.ordering_seq,
    isHeld: row.held,
    status: row.status,
    resolution: row.resolution,
    retryCount: row.retry_count,
    nextAttemptAt: row.next_attempt_at,
    firstSentAt: row.first_sent_at,
    lastError: row.last_error,
    inDoubt: row.in_doubt,
    requestText: row.request_text,
    requestDigest: row.request_digest,
    responseText: row.response_text,
    traceId: row.trace_id,
    traceparent: row.traceparent,
    supersedesId: row.supersedes_id,
    supersededById: row.superseded_by_id,
    createdAt: row.created_at,
    createdAtExact: row.created_at_exact,
    updatedAt: row.updated_at,
    archivedAt: row.archived_at,
  };
}

async function selectAudit(db: Queryable, id: bigint): Promise<readonly AuditEntry[]> {
  const rows = await db.query<AuditEntry>(sql`
    SELECT id, status_from AS "statusFrom", status_to AS "statusTo", retry_count AS "retryCount",
           last_error AS "lastError", trace_id AS "traceId", broker_order_id AS "brokerOrderId",
           lease_epoch AS "leaseEpoch", actor, reason, at
    FROM outbox.outbox_audit
    WHERE outbox_id = ${id}
    ORDER BY id DESC
    LIMIT ${auditLimit}`);
  return rows.toReversed();
}

const ledgerColumns: Sql = sql`
  l.idempotency_key AS "idempotencyKey", l.request_digest AS "requestDigest", l.result_digest AS "resultDigest",
  l.status, l.outside_id AS "outsideId", l.outbox_id AS "orderId", NULLIF(l.expires_at, 'infinity') AS "expiresAt",
  l.created_at AS "createdAt", l.updated_at AS "updatedAt"`;

async function selectUses(db: Queryable, idempotencyKey: string): Promise<readonly LedgerEntry[]> {
  return db.query<LedgerEntry>(sql`
    SELECT ${ledgerColumns}, NULL::timestamptz AS "archivedAt"
    FROM outbox.idempo_ledger l WHERE l.idempotency_key = ${idempotencyKey}
    UNION ALL
    SELECT ${ledgerColumns}, l.archived_at AS "archivedAt"
    FROM outbox.idempo_ledger_archive l WHERE l.idempotency_key = ${idempotencyKey}
    ORDER BY "orderId" DESC
    LIMIT ${usesLimit}`);
}
