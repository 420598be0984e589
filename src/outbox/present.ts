import { formatInstant } from '../kernel/timestamp.ts';
import { rawJson, type RawJson } from '../platform/http/raw-json.ts';
import type { AttemptSummary, AuditEntry } from './domain/attempts.ts';
import type { LanePosition, Order, OrderDetails } from './domain/order-details.ts';

/** Orders as the API shows them. */

export type Json = Readonly<Record<string, unknown>>;

const raw = (text: string | null): RawJson | null => (text === null ? null : rawJson(text));

export function presentOrder(order: Order): Json {
  const isWaiting = order.status === 'queued' || order.status === 'failed';
  return {
    id: order.id,
    idempotency_key: order.idempotencyKey,
    request: raw(order.requestText),
    request_digest: order.requestDigest,
    status: order.status,
    retry_count: order.retryCount,
    next_attempt_at: isWaiting ? formatInstant(order.nextAttemptAt) : null,
    last_error: order.lastError,
    created_at: formatInstant(order.createdAt),
    updated_at: formatInstant(order.updatedAt),
    destination: order.destination,
    ordering_key: order.orderingKey,
    ordering_seq: order.orderingSeq,
    held: order.isBlocked,
    trace_id: order.traceId,
    traceparent: order.traceparent,
    first_sent_at: formatInstant(order.firstSentAt),
    in_doubt: order.inDoubt,
    response: raw(order.responseText),
    resolution: order.resolution,
    needs_attention: order.status === 'dead' && order.resolution === null,
    supersedes_id: order.supersedesId,
    superseded_by_id: order.supersededById,
    fingerprint: order.fingerprint,
    archived: order.archivedAt !== null,
    ...(order.requestText === null ? { request_omitted: true } : {}),
    ...(order.isResponseOmitted ? { response_omitted: true } : {}),
  };
}

export function presentOrderDetails({ order, attempts, audit, lane }: OrderDetails): Json {
  return {
    ...presentOrder(order),
    lane: lane === null ? null : presentLane(lane),
    attempts: attempts.map(presentAttempt),
    audit: audit.map(presentAudit),
  };
}

function presentLane({ blockedById, behind, isLowerBound }: LanePosition): Json {
  return {
    blocked_by_id: blockedById,
    behind,
    ...(isLowerBound ? { behind_is_lower_bound: true } : {}),
  };
}

function presentAudit(entry: AuditEntry): Json {
  return {
    at: formatInstant(entry.at),
    status_from: entry.statusFrom,
    status_to: entry.statusTo,
    retry_count: entry.retryCount,
    last_error: entry.lastError,
    trace_id: entry.traceId,
    broker_order_id: entry.brokerOrderId,
    actor: entry.actor,
    reason: entry.reason,
  };
}

export function presentAttempt(attempt: AttemptSummary): Json {
  return {
    no: attempt.no,
    started_at: formatInstant(attempt.startedAt),
    ended_at: formatInstant(attempt.endedAt),
    outcome: attempt.outcome,
    error: attempt.error,
    outside_id: attempt.outsideId,
  };
}
