import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { Attributes, Link, Span, Tracer } from '@opentelemetry/api';
import type { Header } from '../../kernel/broker-record.ts';
import { contextOf, readTraceContext } from './trace-context.ts';

/**
 * Spans of messages, by the semantic conventions for messaging. A batch belongs to no trace of its messages, so its
 * span is linked to them; a message that is sent gets a span in its own trace.
 */
type Carrier = Readonly<{ headers: readonly Header[] }>;

/** The SDK keeps as many. */
const maxLinks = 128;

/** To the spans of the producers, as far as the records name them. */
function linksTo(records: readonly Carrier[]): Link[] {
  const links: Link[] = [];
  for (const record of records) {
    if (links.length === maxLinks) break;
    const found = readTraceContext({ traceparent: traceparentIn(record) });
    if (found !== undefined) links.push({ context: found });
  }
  return links;
}

const traceparentKey = Buffer.from('traceparent');

function traceparentIn({ headers }: Carrier): string | undefined {
  // As consumers read headers: the last one counts.
  return headers.findLast(({ key }) => key.equals(traceparentKey))?.value?.toString('latin1');
}

/** Of a consumer that reads or processes a batch. */
export function batchOptions(
  operation: 'poll' | 'process',
  { topic, partition }: Readonly<{ topic: string; partition: number }>,
  records: readonly Carrier[],
): Readonly<{ kind: SpanKind; attributes: Attributes; links: Link[] }> {
  return {
    kind: operation === 'poll' ? SpanKind.CLIENT : SpanKind.CONSUMER,
    attributes: {
      'messaging.system': 'kafka',
      'messaging.operation.name': operation,
      'messaging.operation.type': operation === 'poll' ? 'receive' : 'process',
      'messaging.destination.name': topic,
      'messaging.destination.partition.id': String(partition),
      'messaging.batch.message_count': records.length,
    },
    links: linksTo(records),
  };
}

/**
 * The span of one record that is sent: in the trace of the record, or in one of its own. It is linked to the operation
 * that sends it, a request for example, which may send a million others.
 */
export function startSend(tracer: Tracer, topic: string, record: Carrier): Span {
  const operation = trace.getSpan(context.active())?.spanContext();
  const parent = contextOf(readTraceContext({ traceparent: traceparentIn(record) }));
  return tracer.startSpan(
    `send ${topic}`,
    {
      kind: SpanKind.PRODUCER,
      attributes: {
        'messaging.system': 'kafka',
        'messaging.operation.name': 'send',
        'messaging.operation.type': 'send',
        'messaging.destination.name': topic,
      },
      links: operation === undefined ? [] : [{ context: operation }],
    },
    parent,
  );
}

/** `error`: why it failed; null if it did not. */
export function endSpan(span: Span, error: string | null): void {
  if (error !== null) span.setStatus({ code: SpanStatusCode.ERROR, message: error });
  span.end();
}
