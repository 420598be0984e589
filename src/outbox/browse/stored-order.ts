import { MAX_JSON_BYTES } from '../../kernel/json-extent.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import type { Resolution, Status } from '../domain/order.ts';
import type { Order } from '../domain/order-details.ts';

/** How an order is read from the live table or the archive, both as `t`. */

export const orderColumns: Sql = sql`
  t.id, t.idempotency_key, t.destination, t.ordering_key, t.ordering_seq, t.held, t.status, t.resolution, t.retry_count,
  t.next_attempt_at, t.first_sent_at, t.last_error, t.fingerprint, t.in_doubt, t.request_digest,
  t.trace_id, t.traceparent, t.supersedes_id, t.created_by, t.created_at, t.updated_at,
  COALESCE(
    to_char(t.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), t.created_at::text) AS created_at_exact,
  CASE WHEN t.resolution = 'superseded' THEN COALESCE(
    (SELECT s.id FROM outbox.outbox_orders s WHERE s.supersedes_id = t.id),
    (SELECT s.id FROM outbox.outbox_orders_archive s WHERE s.supersedes_id = t.id)) END AS superseded_by_id`;

/**
 * Request and response as JSON text, unless they are larger than the limits. The size is that of the text: PostgreSQL
 * writes numbers without exponents, and the column may be compressed.
 */
function jsonColumns(maxRequestBytes: number, maxResponseBytes: number): Sql {
  return sql`
    CASE WHEN platform.json_bytes(t.request_json) <= ${maxRequestBytes} THEN t.request_json::text END AS request_text,
    CASE WHEN platform.json_bytes(t.response) <= ${maxResponseBytes} THEN t.response::text END AS response_text,
    t.response IS NOT NULL AS has_response`;
}

/** Orders stored before the limit was introduced may be larger. */
export const wholeJson: Sql = jsonColumns(MAX_JSON_BYTES, MAX_JSON_BYTES);
/** Lists omit larger values, so that a page cannot grow to a hundred megabytes. */
export const listedJson: Sql = jsonColumns(65_536, 16_384);

/** How many bytes of JSON an order adds to an answer. */
export const jsonBytes: Sql = sql`
  LEAST(platform.json_bytes(t.request_json), ${MAX_JSON_BYTES}::bigint)
  + LEAST(COALESCE(platform.json_bytes(t.response), 0), ${MAX_JSON_BYTES}::bigint) AS bytes`;

export type OrderRow = {
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
  fingerprint: string | null;
  in_doubt: boolean;
  request_text: string | null;
  request_digest: string;
  response_text: string | null;
  has_response: boolean;
  trace_id: string | null;
  traceparent: string | null;
  supersedes_id: bigint | null;
  superseded_by_id: bigint | null;
  created_by: string | null;
  created_at: Date;
  created_at_exact: string;
  updated_at: Date;
  archived_at: Date | null;
};

export function orderOf(row: OrderRow): Order {
  return {
    id: row.id,
    idempotencyKey: row.idempotency_key,
    destination: row.destination,
    orderingKey: row.ordering_key,
    orderingSeq: row.ordering_seq,
    isBlocked: row.held,
    status: row.status,
    resolution: row.resolution,
    retryCount: row.retry_count,
    nextAttemptAt: row.next_attempt_at,
    firstSentAt: row.first_sent_at,
    lastError: row.last_error,
    fingerprint: row.fingerprint,
    inDoubt: row.in_doubt,
    requestText: row.request_text,
    requestDigest: row.request_digest,
    responseText: row.response_text,
    isResponseOmitted: row.has_response && row.response_text === null,
    traceId: row.trace_id,
    traceparent: row.traceparent,
    supersedesId: row.supersedes_id,
    supersededById: row.superseded_by_id,
    createdBy: row.created_by,
    createdAt: row.created_at,
    createdAtExact: row.created_at_exact,
    updatedAt: row.updated_at,
    archivedAt: row.archived_at,
  };
}
