import { randomUUID } from 'node:crypto';
import type {
  HttpSettings,
  KafkaSettings,
  SmtpSettings,
} from '../../src/outbox/domain/destination-settings.ts';
import type { OutgoingOrder } from '../../src/outbox/deliver/senders/port.ts';

const anySettings = {
  maxInFlight: 16,
  timeoutMs: 2000,
  maxAgeMs: 86_400_000,
  schema: undefined,
} as const;

/** Settings of an HTTP destination, with the changes of the test. */
export function httpSettings(changes: Partial<HttpSettings> & Readonly<{ url: string }>): HttpSettings {
  return {
    ...anySettings,
    name: 'broker',
    type: 'http',
    method: 'POST',
    headers: {},
    tls: undefined,
    body: 'request',
    response: 'json',
    maxResponseBytes: 65_536,
    outsideIdField: 'broker_order_id',
    idempotency: 'enforced',
    dedupWindowMs: 86_400_000,
    conflict: undefined,
    statusUrl: undefined,
    status: undefined,
    ...changes,
  };
}

export function kafkaSettings(changes: Partial<KafkaSettings> & Readonly<{ topic: string }>): KafkaSettings {
  return { ...anySettings, name: 'orders_topic', type: 'kafka', key: 'ordering_key', ...changes };
}

export function smtpSettings(changes: Partial<SmtpSettings> & Readonly<{ port: number }>): SmtpSettings {
  return {
    ...anySettings,
    name: 'mail',
    type: 'smtp',
    host: '127.0.0.1',
    security: 'none',
    user: undefined,
    password: undefined,
    from: 'Redrive <redrive@example.org>',
    to: ['ops@example.org'],
    ...changes,
  };
}

export function outgoingOrder(changes: Partial<OutgoingOrder> = {}): OutgoingOrder {
  return {
    id: 1n,
    idempotencyKey: `key-${randomUUID()}`,
    request: '{"symbol":"USDJPY","intent":"BUY","qty":10000,"limit_price":145.001}',
    orderingKey: null,
    traceId: null,
    traceparent: null,
    ...changes,
  };
}
