import { SpanKind, trace } from '@opentelemetry/api';
import { notRetryable } from '../jobs/domain/handler-signals.ts';
import type { ClaimedJob } from '../jobs/claim-jobs.ts';
import type { JobContext } from '../jobs/domain/job-context.ts';
import { contextOf, readTraceContext } from '../platform/telemetry/trace-context.ts';
import { inSpan } from '../platform/telemetry/with-span.ts';
import type { JobHandler } from './job-handler.ts';
import { readPayload, type Queue } from './queue.ts';

const tracer = trace.getTracer('redrive');

/** Wraps the service's handler: checks the payload, and runs it in a span below the one that added the job. */
export function handlerOf<Input, Output>(
  queue: Queue<Input, Output>,
  handler: JobHandler<Output>,
): (job: ClaimedJob, context: JobContext) => unknown {
  if (typeof handler !== 'function') throw new TypeError('handler is not a function');
  const handle = (claimed: ClaimedJob, payload: Output, about: JobContext): unknown => {
    const { jobId, retryCount, maxRetries, deferrals, trace: traceparent } = claimed;
    const job = { jobId, queue: queue.name, payload, retryCount, maxRetries, deferrals, traceparent };
    if (traceparent === null) return handler(job, about);
    const attributes = {
      'messaging.system': 'redrive',
      'messaging.operation.name': 'process',
      'messaging.operation.type': 'process',
      'messaging.destination.name': queue.name,
      'messaging.message.id': jobId,
    };
    const parent = contextOf(readTraceContext({ traceparent }));
    const options = { kind: SpanKind.CONSUMER, attributes, parent };
    return inSpan(tracer, `process ${queue.name}`, options, async () => handler(job, about));
  };
  if (queue.schema === null) return (claimed, about) => handle(claimed, claimed.payload as Output, about);
  return async (claimed, about) => {
    const read = await readPayload(queue, claimed.payload);
    if (!read.ok) throw notRetryable(`payload does not match the schema of ${queue.name}: ${read.reason}`);
    return handle(claimed, read.payload, about);
  };
}
