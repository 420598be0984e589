import { isSpanContextValid, trace, type Span, type SpanContext } from '@opentelemetry/api';
import { readTraceContext } from './trace-context.ts';

/**
 * The traceparent to send with an item: the active span if it belongs to the item's trace or the item has none, else the
 * item's own, because the span of a batch belongs to none of its items. The item's traceparent is parsed and rewritten,
 * so only a valid one is sent.
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

/** That of a span that is exported; undefined without an SDK. */
export function traceparentOfSpan(span: Span | undefined): string | undefined {
  return span?.isRecording() === true ? write(span.spanContext()) : undefined;
}

function write({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${(traceFlags & 0xff).toString(16).padStart(2, '0')}`;
}
