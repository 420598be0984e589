import { trace } from '@opentelemetry/api';
import type { Backoff } from '../../kernel/backoff.ts';
import type { Broker } from '../../platform/broker/port.ts';
import type { DestinationSettings, HttpSettings } from '../domain/destination-settings.ts';
import type { SendPolicy } from '../domain/order.ts';
import type { Destination } from '../usecase/ports.ts';
import { createStatusQuestion } from './ask-status.ts';
import { createHttpSender, type SenderOptions } from './http-sender.ts';
import { createKafkaSender } from './kafka-sender.ts';
import { compileRequestSchema } from './request-schema.ts';
import { createSmtpSender } from './smtp-sender.ts';

export type DestinationDeps = SenderOptions &
  Readonly<{
    /** Null where Kafka is disabled: orders to a topic wait. */
    broker: Broker | null;
    retryMax: number;
    backoff: Backoff;
    isInternal?: boolean;
  }>;

type Way = Pick<Destination, 'send' | 'askStatus' | 'timeoutMs' | 'close'>;

/** Nothing is connected before the first order. Throws for settings that can never work. */
export function createDestination(settings: DestinationSettings, deps: DestinationDeps): Destination {
  return {
    name: settings.name,
    type: settings.type,
    isInternal: deps.isInternal ?? false,
    policy: policyOf(settings, deps),
    maxInFlight: settings.maxInFlight,
    isDisabled: settings.type === 'kafka' && deps.broker === null,
    hasSchema: settings.schema !== undefined,
    flawsOf: settings.schema === undefined ? () => [] : compileRequestSchema(settings.schema),
    ...traced(settings.name, wayTo(settings, deps)),
  };
}

const tracer = trace.getTracer('redrive');

/** One span around all that is sent together. */
function traced(destination: string, way: Way): Way {
  return {
    ...way,
    send(orders, stopping) {
      const attributes = { slice: 'outbox', destination, items: orders.length };
      return tracer.startActiveSpan('send', { attributes }, (span) => {
        const outcomes = way.send(orders, stopping);
        void Promise.allSettled(outcomes).then(() => span.end());
        return outcomes;
      });
    },
  };
}

function policyOf(settings: DestinationSettings, { retryMax, backoff }: DestinationDeps): SendPolicy {
  const { maxAgeMs } = settings;
  const promise =
    settings.type === 'http'
      ? { idempotency: settings.idempotency, dedupWindowMs: settings.dedupWindowMs }
      : // Who reads a topic or a mailbox knows a double by its key, or bears it.
        { idempotency: 'consumer' as const, dedupWindowMs: 0 };
  return { ...promise, retryMax: settings.retryMax ?? retryMax, backoff, maxAgeMs };
}

function wayTo(settings: DestinationSettings, deps: DestinationDeps): Way {
  switch (settings.type) {
    case 'http':
      return wayByHttp(settings, deps);
    case 'kafka':
      return wayWithoutQuestion(settings, createKafkaSender(settings, deps.broker));
    case 'smtp':
      return wayWithoutQuestion(settings, createSmtpSender(settings));
  }
}

function wayByHttp(settings: HttpSettings, deps: DestinationDeps): Way {
  const { statusUrl, timeoutMs } = settings;
  const question = statusUrl === undefined ? null : createStatusQuestion({ ...settings, statusUrl });
  const sender = createHttpSender(settings, deps);
  return {
    send: sender.send,
    askStatus: question?.ask ?? null,
    // The question after a send has as long again.
    timeoutMs: question === null ? timeoutMs : 2 * timeoutMs,
    close: async () => {
      await Promise.all([sender.close(), question?.close()]);
    },
  };
}

function wayWithoutQuestion({ timeoutMs }: DestinationSettings, send: Destination['send']): Way {
  return { send, askStatus: null, timeoutMs, close: async () => {} };
}
