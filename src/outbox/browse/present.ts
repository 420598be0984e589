import { createItemCover } from '../../kernel/protect/item-cover.ts';
import type { Masks } from '../../kernel/protect/protection.ts';
import { formatInstant } from '../../kernel/timestamp.ts';
import type { GateSnapshot } from '../domain/circuit.ts';
import type { Order } from '../domain/order-details.ts';
import { presentAttempt, presentOrder, type Json } from '../present.ts';
import type { Facets } from './count-facets.ts';
import type { DescribedDestination } from './describe-destinations.ts';
import type { Proof } from './find-ledger-entries.ts';

/** The newest use of a key, with the earlier ones in a field of it. */
export function presentProofs([newest, ...earlier]: readonly Proof[], masksOf: MasksOf): Json {
  return {
    ...(newest === undefined ? {} : presentProof(newest, masksOf)),
    earlier_uses: earlier.map((proof) => presentProof(proof, masksOf)),
  };
}

/** Null if the order is gone. */
type MasksOf = (order: Order | null) => Masks;

function presentProof({ entry, details }: Proof, masksOf: MasksOf): Json {
  const masks = masksOf(details?.order ?? null);
  const cover = createItemCover(masks);
  const order = details === null ? null : presentOrder(details.order, masks);
  return {
    idempotency_key: cover.keyText(entry.idempotencyKey),
    request_digest: order === null ? (masks.isEmpty ? entry.requestDigest : null) : order['request_digest'],
    status: entry.status,
    result_digest: entry.resultDigest,
    outside_id: cover.text(entry.outsideId),
    expires_at: formatInstant(entry.expiresAt),
    created_at: formatInstant(entry.createdAt),
    updated_at: formatInstant(entry.updatedAt),
    archived: entry.archivedAt !== null,
    archived_at: formatInstant(entry.archivedAt),
    order_id: entry.orderId,
    supersedes_id: details?.order.supersedesId ?? null,
    superseded_by_id: details?.order.supersededById ?? null,
    order,
    attempts: details?.attempts.map((attempt) => presentAttempt(attempt, cover)) ?? [],
    ...cover.mark(),
  };
}

export function presentFacets({ count, sampled, facets }: Facets, masks: Masks): Json {
  return {
    total_count: count.total,
    ...(count.isEstimate ? { total_is_estimate: true } : {}),
    ...(sampled === null ? {} : { sampled }),
    facets: Object.fromEntries(
      [...facets].map(([field, values]) => [
        field,
        field === 'error_code' ? values.map((each) => ({ ...each, value: masks.text(each.value) })) : values,
      ]),
    ),
  };
}

export function presentDestination(
  { name, settings, status, backlog }: DescribedDestination,
  masks: Masks,
): Json {
  return {
    name,
    configured: settings !== null,
    internal: settings?.isInternal ?? null,
    type: settings?.type ?? null,
    idempotency: settings?.policy.idempotency ?? null,
    throttle: status === null ? null : presentThrottle(status.snapshot),
    circuit: status === null ? null : presentCircuit(status.snapshot, masks),
    asks_status: settings?.hasStatusUrl ?? null,
    retry_max: settings?.policy.retryMax ?? null,
    lag_seconds: backlog.lagSeconds,
    lag_p99_seconds: backlog.lagP99Seconds,
    waiting: backlog.waiting.total,
    ...(backlog.waiting.isEstimate ? { waiting_is_lower_bound: true } : {}),
    needs_attention: backlog.needsAttention.total,
    ...(backlog.needsAttention.isEstimate ? { needs_attention_is_lower_bound: true } : {}),
    in_flight: {
      here: status?.inFlight ?? 0,
      all: backlog.inFlight,
      limit_here: settings?.maxInFlight ?? null,
    },
  };
}

/** Null if the destination is not throttled. */
function presentThrottle({ rate, peak, holdUntil }: GateSnapshot): Json | null {
  if (rate === null && holdUntil === null) return null;
  return { rate_per_second: rate, peak_per_second: peak, held_until: formatInstant(holdUntil) };
}

function presentCircuit({ circuit }: GateSnapshot, masks: Masks): Json {
  const { state, openedAt, reason, nextProbeAt } = circuit;
  if (state === 'closed') return { state };
  return {
    state,
    opened_at: formatInstant(openedAt),
    reason: masks.text(reason),
    next_probe_at: formatInstant(nextProbeAt),
  };
}
