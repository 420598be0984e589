import type { HttpSettings } from '../../domain/destination-settings.ts';
import type { OutgoingOrder } from './port.ts';

type Reviver = (key: string, value: unknown) => unknown;
const { rawJSON } = JSON as unknown as Readonly<{ rawJSON: (text: string) => unknown }>;

/**
 * The body for an order: its request as stored, or with key and trace id added to its fields. Numbers are copied digit
 * by digit and never converted to doubles. Undefined if the request is not a JSON object.
 */
export function orderBody(order: OutgoingOrder, form: HttpSettings['body']): string | undefined {
  if (form === 'request') return order.request;
  const request = parseObject(order.request);
  if (request === undefined) return undefined;
  return JSON.stringify({
    ...request,
    idempotency_key: order.idempotencyKey,
    ...(order.traceId === null ? {} : { trace_id: order.traceId }),
  });
}

function parseObject(text: string): object | undefined {
  if (!/^\s*\{/.test(text)) return undefined;
  const keepNumber = (_key: string, value: unknown, { source }: Readonly<{ source: string }>): unknown =>
    typeof value === 'number' ? rawJSON(source) : value;
  try {
    return JSON.parse(text, keepNumber as Reviver) as object;
  } catch {
    return undefined;
  }
}
