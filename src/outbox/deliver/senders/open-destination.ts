import { SpanKind, trace, type Span } from '@opentelemetry/api';
import type { Backoff } from '../../../kernel/backoff.ts';
import type { Broker } from '../../../platform/broker/port.ts';
import type { DestinationSettings, HttpSettings } from '../../domain/destination-settings.ts';
import type { SendPolicy } from '../../domain/order.ts';
import { createStatusQuestion } from './ask-status.ts';
import { createHttpSender, type SenderOptions } from './http-sender.ts';
import { createKafkaSender } from './kafka-sender.ts';
import { endSpan } from '../../../platform/telemetry/message-spans.ts';
import { traceparentOfSpan } from '../../../platform/telemetry/outgoing-traceparent.ts';
import { contextOf, readTraceContext } from '../../../platform/telemetry/trace-context.ts';
import type { OpenDestination, OutgoingOrder } from './port.ts';
import { compileRequestSchema } from './request-schema.ts';
import { createSmtpSender } from './smtp-sender.ts';

export type DestinationDeps = SenderOptions &
  Readonly<{
    /** Null if Kafka is disabled: orders to a topic wait. */
    broker: Broker | null;
    retryMax: number;
    backoff: Backoff;
    isInternal?: boolean;
  }>;

/** Connects nothing before the first order. Throws for settings that can never work. */
export function openDestination(settings: DestinationSettings, deps: DestinationDeps): OpenDestination {
  const connection = connectionTo(settings, deps);
  return {
    name: settings.name,
    type: settings.type,
    isInternal: deps.isInternal ?? false,
    policy: policyOf(settings, deps),
    maxInFlight: settings.maxInFlight,
    hasStatusUrl: settings.type === 'http' && settings.statusUrl !== undefined,
    isDisabled: settings.type === 'kafka' && deps.broker === null,
    hasSchema: settings.schema !== undefined,
    flawsOf: settings.schema === undefined ? () => [] : compileRequestSchema(settings.schema),
    ...connection,
    send: traced(settings, connection.send),
  };
}

const tracer = trace.getTracer('redrive');

/** One span per order, in the trace with which it was added; the destination gets that span as its parent. */
function traced(
  { name, type }: Pick<DestinationSettings, 'name' | 'type'>,
  send: OpenDestination['send'],
): OpenDestination['send'] {
  return (orders, stopping) => {
    const spans = orders.map((order) => startOrderSpan(order, { name, type }));
    const isTraced = spans[0]?.isRecording() === true;
    const sent = isTraced
      ? orders.map((order, i) => ({
          ...order,
          traceparent: traceparentOfSpan(spans[i]) ?? order.traceparent,
        }))
      : orders;
    const outcomes = send(sent, stopping);
    if (!isTraced) return outcomes;
    return outcomes.map(async (sending, i) => {
      const outcome = await sending;
      spans[i]?.setAttribute('outbox.outcome', outcome.end);
      if (spans[i] !== undefined) endSpan(spans[i], outcome.end === 'sent' ? null : outcome.end);
      return outcome;
    });
  };
}

function startOrderSpan(
  order: OutgoingOrder,
  { name, type }: Pick<DestinationSettings, 'name' | 'type'>,
): Span {
  const parent = contextOf(readTraceContext({ traceparent: order.traceparent ?? undefined }));
  const attributes = {
    'messaging.operation.name': 'send',
    'messaging.operation.type': 'send',
    'messaging.destination.name': name,
    'messaging.message.id': String(order.id),
    'outbox.destination.type': type,
  };
  const kind = type === 'kafka' ? SpanKind.PRODUCER : SpanKind.CLIENT;
  return tracer.startSpan(`send ${name}`, { kind, attributes }, parent);
}

function policyOf(settings: DestinationSettings, { retryMax, backoff }: DestinationDeps): SendPolicy {
  const { maxAgeMs } = settings;
  const promise =
    settings.type === 'http'
      ? { idempotency: settings.idempotency, dedupWindowMs: settings.dedupWindowMs }
      : // Consumers of a topic recognise duplicates by their key; a duplicate mail is tolerated.
        { idempotency: 'consumer' as const, dedupWindowMs: 0 };
  return { ...promise, retryMax: settings.retryMax ?? retryMax, backoff, maxAgeMs };
}

type Connection = Pick<OpenDestination, 'send' | 'askStatus' | 'timeoutMs' | 'close'>;

function connectionTo(settings: DestinationSettings, deps: DestinationDeps): Connection {
  switch (settings.type) {
    case 'http':
      return httpConnection(settings, deps);
    case 'kafka':
      return withoutStatus(settings, createKafkaSender(settings, deps.broker));
    case 'smtp':
      return withoutStatus(settings, createSmtpSender(settings));
  }
}

function httpConnection(settings: HttpSettings, deps: DestinationDeps): Connection {
  const { statusUrl, timeoutMs } = settings;
  const question = statusUrl === undefined ? null : createStatusQuestion({ ...settings, statusUrl });
  const sender = createHttpSender(settings, deps);
  return {
    send: sender.send,
    askStatus: question?.ask ?? null,
    // A status question after the send has the same timeout again.
    timeoutMs: question === null ? timeoutMs : 2 * timeoutMs,
    close: async () => {
      await Promise.all([sender.close(), question?.close()]);
    },
  };
}

function withoutStatus({ timeoutMs }: DestinationSettings, send: OpenDestination['send']): Connection {
  return { send, askStatus: null, timeoutMs, close: async () => {} };
}
