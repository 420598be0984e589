import { sha256Of } from '../../../kernel/canonical-json.ts';
import { messageOf } from '../../../kernel/errors.ts';
import { cleanText } from '../../../kernel/text.ts';
import type { Broker, Header, OutgoingRecord, PublishResult } from '../../../platform/broker/port.ts';
import type { KafkaSettings } from '../../domain/destination-settings.ts';
import type { SendOutcome } from '../../domain/order.ts';
import type { OutgoingOrder, Sender } from './port.ts';
import { traceparentOf } from '../../../platform/telemetry/outgoing-traceparent.ts';

/** Costs no attempt, so it need not back off. */
const UNREACHABLE_RETRY_MS = 5000;
const DISABLED_RETRY_MS = 5000;
const MAX_DETAIL_BYTES = 500;

/**
 * Publishes all orders of a call at once, one record each. If the broker is unreachable, the orders are released and
 * lose no retry. A write without an answer is repeated; consumers recognise the duplicate by its key.
 */
export function createKafkaSender(settings: KafkaSettings, broker: Broker | null): Sender {
  return (orders, stopping) => {
    if (stopping.aborted) return orders.map(() => released('shutting down'));
    if (broker === null) return orders.map(() => released('Kafka is disabled', DISABLED_RETRY_MS));
    // Without the signal: cancelling a publish would leave its orders in doubt.
    const publishing = broker
      .publish(
        orders.map((order) => recordOf(order, settings)),
        { timeoutMs: settings.timeoutMs },
      )
      .then(
        (results) => (index: number) => outcomeOf(results[index], settings.topic),
        (error: unknown) => () => unknown(messageOf(error)),
      );
    return orders.map(async (_order, index) => (await publishing)(index));
  };
}

function recordOf(order: OutgoingOrder, { topic, key }: KafkaSettings): OutgoingRecord {
  const keys = { ordering_key: order.orderingKey, idempotency_key: order.idempotencyKey, none: null };
  const recordKey = keys[key];
  const traceparent = traceparentOf(order.traceparent);
  return {
    topic,
    key: recordKey === null ? null : Buffer.from(recordKey),
    value: Buffer.from(order.request),
    headers: [
      header('idempotency-key', order.idempotencyKey),
      ...(traceparent === undefined ? [] : [header('traceparent', traceparent)]),
    ],
  };
}

const header = (key: string, value: string): Header => ({ key: Buffer.from(key), value: Buffer.from(value) });

function outcomeOf(result: PublishResult | undefined, topic: string): SendOutcome {
  switch (result?.result) {
    case 'acked': {
      const place = `${topic}-${result.partition}@${result.offset}`;
      return {
        end: 'sent',
        answer: { status: null, digest: sha256Of(place), outsideId: place },
        isConflict: false,
      };
    }
    case 'failed':
      return failureOf(result);
    case 'unknown':
      return unknown(describe(result));
    case 'skipped':
      return { end: 'released', reason: 'an earlier record of the batch could not be published' };
    case undefined:
      return unknown('no result from the broker');
  }
}

/** An unreachable broker or a topic that does not exist yet is not the order's fault. */
function failureOf(result: Extract<PublishResult, { result: 'failed' }>): SendOutcome {
  const detail = describe(result);
  if (result.retriable)
    return { end: 'released', reason: detail, retryAfterMs: UNREACHABLE_RETRY_MS, isOutage: true };
  if (result.code === 'UNKNOWN_TOPIC_OR_PARTITION') return { end: 'failed', code: 'BROKER_5XX', detail };
  const isDenied = result.code.endsWith('_AUTHORIZATION_FAILED');
  return { end: 'refused', code: isDenied ? 'UNAUTHORIZED' : 'BAD_REQUEST', detail };
}

function unknown(detail: string): SendOutcome {
  return { end: 'unknown', code: 'NETWORK_TIMEOUT', detail };
}

function released(reason: string, retryAfterMs?: number): Promise<SendOutcome> {
  return Promise.resolve({ end: 'released', reason, retryAfterMs });
}

function describe({ code, message }: Readonly<{ code: string; message: string }>): string {
  return cleanText(`${code}: ${message}`, MAX_DETAIL_BYTES);
}
