import { context, SpanStatusCode } from '@opentelemetry/api';
import type { Attributes, Context, Span, SpanOptions, Tracer } from '@opentelemetry/api';
import { describeThrown } from '../../kernel/thrown.ts';

/** Runs `work` in an active span; records and rethrows its error. */
export async function withSpan<T>(
  tracer: Tracer,
  name: string,
  attributes: Attributes,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  return inSpan(tracer, name, { attributes }, work);
}

/** The same with a kind, links or another parent than the active span. */
export async function inSpan<T>(
  tracer: Tracer,
  name: string,
  { parent = context.active(), ...options }: SpanOptions & Readonly<{ parent?: Context }>,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  return tracer.startActiveSpan(name, options, parent, async (span) => {
    try {
      return await work(span);
    } catch (error) {
      noteFailure(span, error);
      throw error;
    } finally {
      span.end();
    }
  });
}

/** Only class and message: an exporter would read any property of the thrown value. */
function noteFailure(span: Span, error: unknown): void {
  const { message, className, stack } = describeThrown(error);
  span.recordException({
    message,
    ...(className === null ? {} : { name: className }),
    ...(stack === null ? {} : { stack }),
  });
  span.setStatus({ code: SpanStatusCode.ERROR, message });
}
