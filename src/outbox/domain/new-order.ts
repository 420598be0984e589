import { requestDigest } from './request-digest.ts';

/** An order as a caller sends it; only its shape has been checked. */
export type OrderInput = Readonly<{
  idempotencyKey: string;
  request: Readonly<Record<string, unknown>>;
  traceId: string | null;
  traceparent: string | null;
}>;

/** An order that is ready to be stored. */
export type NewOrder = Readonly<{
  idempotencyKey: string;
  destination: string;
  /** JSON text. */
  request: string;
  digest: string;
  orderingKey: string | null;
  traceId: string | null;
  traceparent: string | null;
}>;

/** `replayed`: the order was stored before. The answer is the one that its first caller got, byte for byte. */
export type AcceptedOrder = Readonly<{ outcome: 'created' | 'replayed'; id: bigint; answer: string }>;

export function newOrder(
  { idempotencyKey, request, traceId, traceparent }: OrderInput,
  { destination, orderingKey }: Readonly<{ destination: string; orderingKey: string | null }>,
): NewOrder {
  return {
    idempotencyKey,
    destination,
    orderingKey,
    // The input check refuses numbers that a double cannot represent, so stringifying loses nothing.
    request: JSON.stringify(request),
    digest: requestDigest({ destination, orderingKey, request }),
    traceId: traceId ?? traceIdIn(request),
    traceparent,
  };
}

const maxTraceIdLength = 255;

/** The request's own `trace_id`, if it is usable as one. */
function traceIdIn({ trace_id: traceId }: OrderInput['request']): string | null {
  const isTraceId = typeof traceId === 'string' && traceId !== '' && traceId.length <= maxTraceIdLength;
  return isTraceId ? traceId : null;
}
