import { formatTimestamp } from '../../kernel/timestamp.ts';
import { rawJson, type RawJson } from '../../platform/http/raw-json.ts';
import type { AttemptSummary, AuditEntry } from '../domain/attempts.ts';
import type { DescribedDestination } from '../usecase/describe-destinations.ts';
import type { GateSnapshot } from '../usecase/destination-gate.ts';
import type { Proof, ToldOrder } from '../usecase/find-order.ts';
import type { Order } from '../usecase/reading-ports.ts';

/** The slice's objects as JSON shows them. */

type Json = Readonly<Record<string, unknown>>;

const at = (instant: Date | null): string | null => (instant === null ? null : formatTimestamp(instant));
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
    next_attempt_at: isWaiting ? at(order.nextAttemptAt) : null,
    last_error: order.lastError,
    created_at: at(order.createdAt),
    updated_at: at(order.updatedAt),
    destination: order.destination,
    ordering_key: order.orderingKey,
    ordering_seq: order.orderingSeq,
    held: order.isHeld,
    trace_id: order.traceId,
    traceparent: order.traceparent,
    first_sent_at: at(order.firstSentAt),
    in_doubt: order.inDoubt,
    response: raw(order.responseText),
    resolution: order.resolution,
    needs_person: order.status === 'dead' && order.resolution === null,
    supersedes_id: order.supersedesId,
    superseded_by_id: order.supersededById,
    archived: order.archivedAt !== null,
    ...(order.requestText === null ? { request_omitted: true } : {}),
  };
}

/** One order by itself also tells its story. */
export function presentToldOrder({ order, attempts, audit }: ToldOrder): Json {
  return {
    ...presentOrder(order),
    attempts: attempts.map(presentAttempt),
    audit: audit.map(presentAudit),
  };
}

/** The answer that the corrected order was given, and which order it stands in for. */
export function presentCorrection(answer: string, supersedesId: bigint): RawJson {
  return rawJson(`${answer.slice(0, -1)}, "supersedes_id" : ${supersedesId}}`);
}

/** The newest use of the key, with the earlier ones beside it. */
export function presentProofs([newest, ...earlier]: readonly Proof[]): Json {
  return {
    ...(newest === undefined ? {} : presentProof(newest)),
    earlier_uses: earlier.map(presentProof),
  };
}

function presentProof({ entry, told }: Proof): Json {
  return {
    idempotency_key: entry.idempotencyKey,
    request_digest: entry.requestDigest,
    status: entry.status,
    result_digest: entry.resultDigest,
    outside_id: entry.outsideId,
    expires_at: at(entry.expiresAt),
    created_at: at(entry.createdAt),
    updated_at: at(entry.updatedAt),
    archived: entry.archivedAt !== null,
    archived_at: at(entry.archivedAt),
    order_id: entry.orderId,
    supersedes_id: told?.order.supersedesId ?? null,
    superseded_by_id: told?.order.supersededById ?? null,
    order: told === null ? null : presentOrder(told.order),
    attempts: told?.attempts.map(presentAttempt) ?? [],
  };
}

export function presentDestination({ name, settings, gate, backlog }: DescribedDestination): Json {
  return {
    name,
    configured: settings !== null,
    internal: settings?.isInternal ?? null,
    type: settings?.type ?? null,
    idempotency: settings?.policy.idempotency ?? null,
    throttle: gate === null ? null : presentThrottle(gate.snapshot),
    circuit: gate === null ? null : presentCircuit(gate.snapshot),
    lag_seconds: backlog.lagSeconds,
    waiting: backlog.waiting.total,
    ...(backlog.waiting.isEstimate ? { waiting_is_lower_bound: true } : {}),
    in_flight: { here: gate?.inFlight ?? 0, all: backlog.inFlight },
  };
}

/** Null where nothing limits it. */
function presentThrottle({ rate, peak, holdUntil }: GateSnapshot): Json | null {
  if (rate === null && holdUntil === null) return null;
  return { rate_per_second: rate, peak_per_second: peak, held_until: at(holdUntil) };
}

function presentCircuit({ circuit }: GateSnapshot): Json {
  const { state, openedAt, reason, nextProbeAt } = circuit;
  if (state === 'closed') return { state };
  return { state, opened_at: at(openedAt), reason, next_probe_at: at(nextProbeAt) };
}

function presentAudit(entry: AuditEntry): Json {
  return {
    at: at(entry.at),
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

function presentAttempt(attempt: AttemptSummary): Json {
  return {
    no: attempt.no,
    started_at: at(attempt.startedAt),
    ended_at: at(attempt.endedAt),
    outcome: attempt.outcome,
    error: attempt.error,
    outside_id: attempt.outsideId,
  };
}
