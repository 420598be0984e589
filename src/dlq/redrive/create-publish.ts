import { trace } from '@opentelemetry/api';
import { messageOf } from '../../kernel/errors.ts';
import type { Broker } from '../../platform/broker/port.ts';
import { endSpan, startSend } from '../../platform/telemetry/message-spans.ts';
import type { Metrics } from '../../platform/telemetry/metrics.ts';
import type { Publish } from './publish-claimed.ts';

const tracer = trace.getTracer('redrive');

/** Publishes with a span around every record, and counts those that arrived. */
export function createPublish(broker: Broker, metrics: Metrics, timeoutMs: number): Publish {
  return async (records) => {
    const spans = records.map((record) => startSend(tracer, record.topic, record));
    const results = await broker.publish(records, { timeoutMs }).catch((error: unknown) => {
      for (const span of spans) endSpan(span, messageOf(error));
      throw error;
    });
    records.forEach(({ topic }, i) => {
      const result = results[i];
      if (result?.result === 'acked') metrics.kafkaProduced(topic);
      if (spans[i] !== undefined)
        endSpan(spans[i], result?.result === 'acked' ? null : (result?.result ?? 'no result'));
    });
    return results;
  };
}
