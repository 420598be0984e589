import { isSpanContextValid, trace, type SpanContext } from '@opentelemetry/api';
import { readTraceContext } from './trace-context.ts';

/**
 * The trace that an item's effect outside belongs to: the span that sends it, where that is part of the item's own
 * trace or the item has none; else what the item brought along, for a span around a batch belongs to none of its
 * items. What the item brought is written anew: only what is a legal traceparent travels.
 */
export function traceparentOf(ofItem: string | null): string | undefined {
  const own = readTraceContext({ traceparent: ofItem ?? undefined });
  const active = trace.getActiveSpan()?.spanContext();
  const isActiveOurs =
    active !== undefined &&
    isSpanContextValid(active) &&
    (own === undefined || own.traceId === active.traceId);
  const chosen = isActiveOurs ? active : own;
  return chosen && write(chosen);
}

function write({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${(traceFlags & 0xff).toString(16).padStart(2, '0')}`;
}
