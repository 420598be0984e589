import { isSpanContextValid, trace } from '@opentelemetry/api';
import { readTraceContext } from '../platform/telemetry/trace-context.ts';

/**
 * Where work belongs in a trace: what the service says, else below the active span. A trace is never worth the work
 * itself: what is no traceparent is left out.
 */
export function traceparentOf(given: string | undefined): string | null {
  if (given !== undefined) return readTraceContext({ traceparent: given }) === undefined ? null : given;
  const span = trace.getActiveSpan()?.spanContext();
  if (span === undefined || !isSpanContextValid(span)) return null;
  return `00-${span.traceId}-${span.spanId}-${(span.traceFlags & 0xff).toString(16).padStart(2, '0')}`;
}
