import { readTraceContext, type TraceHeaders } from '../telemetry/trace-context.ts';

/** The caller's trace context, to be stored with the item; null if missing or invalid. */
export function traceparentOf({ headers }: Readonly<{ headers: TraceHeaders }>): string | null {
  const context = readTraceContext(headers);
  if (context === undefined) return null;
  const flags = context.traceFlags.toString(16).padStart(2, '0');
  // Version 00 without the extra fields of later versions.
  return `00-${context.traceId}-${context.spanId}-${flags}`;
}
