import { createTraceState, isSpanContextValid, ROOT_CONTEXT, trace } from '@opentelemetry/api';
import type { Context, SpanContext } from '@opentelemetry/api';

const MAX_TRACE_STATE_LENGTH = 512;

export type TraceHeaders = Readonly<Record<string, string | string[] | undefined>>;

/**
 * The caller's W3C Trace Context; undefined if the header is missing or invalid. Parsed here instead of by a propagator,
 * so that logs have trace ids without an SDK too.
 */
export function readTraceContext(headers: TraceHeaders): SpanContext | undefined {
  const { traceparent, tracestate } = headers;
  if (typeof traceparent !== 'string') return undefined;
  const match = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/.exec(traceparent);
  const [, version, traceId, spanId, flags, more] = match ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  if (version === 'ff' || (version === '00' && more !== undefined)) return undefined;
  const isStateUsable = typeof tracestate === 'string' && tracestate.length <= MAX_TRACE_STATE_LENGTH;
  const spanContext: SpanContext = {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16) & 1,
    isRemote: true,
    ...(isStateUsable ? { traceState: createTraceState(tracestate) } : {}),
  };
  return isSpanContextValid(spanContext) ? spanContext : undefined;
}

/** The parent context of the request's span: the caller's span, or the root. */
export function contextOf(parent: SpanContext | undefined): Context {
  return parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent);
}
