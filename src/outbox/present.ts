import { createItemCover, type ItemCover } from '../kernel/protect/item-cover.ts';
import type { Masks } from '../kernel/protect/protection.ts';
import { formatInstant } from '../kernel/timestamp.ts';
import { rawJson, type RawJson } from '../platform/http/raw-json.ts';
import type { AttemptSummary, AuditEntry } from './domain/attempts.ts';
import type { LanePosition, Order, OrderDetails } from './domain/order-details.ts';

/** Orders as the API shows them. */

export type Json = Readonly<Record<string, unknown>>;

const raw = (text: string | null): RawJson | null => (text === null ? null : rawJson(text));

export function presentOrder(order: Order, masks: Masks): Json {
  const cover = createItemCover(masks);
  return { ...orderFields(order, masks, cover), ...cover.mark() };
}

function orderFields(order: Order, masks: Masks, cover: ItemCover): Json {
  const request = cover.json(order.requestText);
  const isWaiting = order.status === 'queued' || order.status === 'failed';
  return {
    id: order.id,
    idempotency_key: cover.keyText(order.idempotencyKey),
    request: raw(request),
    // Whoever can guess what is covered could test the guess.
    request_digest:
      masks.isEmpty || (request !== null && request === order.requestText) ? order.requestDigest : null,
    status: order.status,
    retry_count: order.retryCount,
    next_attempt_at: isWaiting ? formatInstant(order.nextAttemptAt) : null,
    last_error: cover.text(order.lastError),
    created_at: formatInstant(order.createdAt),
    updated_at: formatInstant(order.updatedAt),
    destination: order.destination,
    ordering_key: cover.keyText(order.orderingKey),
    ordering_seq: order.orderingSeq,
    held: order.isBlocked,
    trace_id: cover.text(order.traceId),
    traceparent: order.traceparent,
    first_sent_at: formatInstant(order.firstSentAt),
    in_doubt: order.inDoubt,
    response: raw(cover.json(order.responseText)),
    resolution: order.resolution,
    needs_attention: order.status === 'dead' && order.resolution === null,
    supersedes_id: order.supersedesId,
    superseded_by_id: order.supersededById,
    created_by: order.createdBy,
    fingerprint: order.fingerprint,
    archived: order.archivedAt !== null,
    ...(order.requestText === null ? { request_omitted: true } : {}),
    ...(order.isResponseOmitted ? { response_omitted: true } : {}),
  };
}

export function presentOrderDetails({ order, attempts, audit, lane }: OrderDetails, masks: Masks): Json {
  const cover = createItemCover(masks);
  return {
    ...orderFields(order, masks, cover),
    lane: lane === null ? null : presentLane(lane),
    attempts: attempts.map((attempt) => presentAttempt(attempt, cover)),
    audit: audit.map((entry) => presentAudit(entry, cover)),
    ...cover.mark(),
  };
}

function presentLane({ blockedById, behind, isLowerBound }: LanePosition): Json {
  return {
    blocked_by_id: blockedById,
    behind,
    ...(isLowerBound ? { behind_is_lower_bound: true } : {}),
  };
}

function presentAudit(entry: AuditEntry, cover: ItemCover): Json {
  return {
    at: formatInstant(entry.at),
    status_from: entry.statusFrom,
    status_to: entry.statusTo,
    retry_count: entry.retryCount,
    last_error: cover.text(entry.lastError),
    trace_id: cover.text(entry.traceId),
    broker_order_id: cover.text(entry.brokerOrderId),
    actor: entry.actor,
    reason: cover.text(entry.reason),
  };
}

export function presentAttempt(attempt: AttemptSummary, cover: ItemCover): Json {
  return {
    no: attempt.no,
    started_at: formatInstant(attempt.startedAt),
    ended_at: formatInstant(attempt.endedAt),
    outcome: attempt.outcome,
    error: cover.text(attempt.error),
    outside_id: cover.text(attempt.outsideId),
  };
}
