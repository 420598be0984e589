import { readTraceContext, type TraceHeaders } from '../telemetry/trace-context.ts';

/** The caller's place in its trace, to be kept with what it asked for; null where it told none, or nonsense. */
export function traceparentOf({ headers }: Readonly<{ headers: TraceHeaders }>): string | null {
  const context = readTraceContext(headers);
  if (context === undefined) return null;
  const flags = context.traceFlags.toString(16).padStart(2, '0');
  // In the version that everybody reads, whatever a later one had behind it.
  return `00-${context.traceId}-${context.spanId}-${flags}`;
}
