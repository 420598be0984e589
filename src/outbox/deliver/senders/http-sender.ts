import { codeOf, messageOf } from '../../../kernel/errors.ts';
import { cleanText } from '../../../kernel/text.ts';
import type { HttpSettings } from '../../domain/destination-settings.ts';
import { judgeAnswer } from '../../domain/judge-answer.ts';
import type { SendOutcome } from '../../domain/order.ts';
import type { OutgoingOrder, Sender } from './port.ts';
import {
  createHttpPool,
  startCall,
  type CallEnd,
  type HttpCall,
} from '../../../platform/http-client/http-call.ts';
import { orderBody } from './order-body.ts';
import { readHeaders, withoutSecrets } from '../../../platform/http-client/outgoing-headers.ts';
import { signatureOf } from './signature.ts';
import { traceparentOf } from '../../../platform/telemetry/outgoing-traceparent.ts';

export type HttpSender = Readonly<{ send: Sender; close(): Promise<void> }>;

export type SenderOptions = Readonly<{
  /** Called for bugs in this code; the order is in doubt then. */
  onError?: ((error: unknown) => void) | undefined;
}>;

const MAX_DETAIL_BYTES = 500;

const stopped: SendOutcome = { end: 'released', reason: 'shutting down' };

/** One request per order, up to `maxInFlight` at once. */
export function createHttpSender(settings: HttpSettings, options: SenderOptions = {}): HttpSender {
  const url = new URL(settings.url);
  const pool = createHttpPool({
    origin: url.origin,
    connections: settings.maxInFlight,
    timeoutMs: settings.timeoutMs,
    tls: settings.tls,
  });
  const secretPath = settings.isUrlSecret === true ? { path: url.pathname.replaceAll('/', ' ') } : {};
  const running = new Set<Promise<unknown>>();
  let isClosed = false;
  const send: Sender = (orders, stopping) => {
    if (stopping.aborted || isClosed) return orders.map(() => Promise.resolve(stopped));
    const read = readHeaders(settings.headers);
    if ('unreadable' in read) return orders.map(() => Promise.resolve(misconfigured(read.unreadable)));
    const started = orders.map((order) => {
      const body = orderBody(order, settings.body);
      if (body === undefined) return { outcome: Promise.resolve(unreadableRequest), withdraw: () => {} };
      const call = startCall(pool, callOf({ settings, url, order, body, headers: read.headers }));
      const outcome = call.ended.then((end) =>
        withoutSecretsIn({ ...read.headers, ...secretPath }, outcomeOf(end, settings, order, options)),
      );
      return { outcome, withdraw: call.withdraw };
    });
    const withdrawAll = (): void => started.forEach(({ withdraw }) => withdraw());
    stopping.addEventListener('abort', withdrawAll, { once: true });
    const outcomes = started.map(({ outcome }) => outcome);
    const all: Promise<unknown> = Promise.allSettled(outcomes).finally(() => {
      stopping.removeEventListener('abort', withdrawAll);
      running.delete(all);
    });
    running.add(all);
    return outcomes;
  };
  return {
    send,
    async close() {
      isClosed = true;
      // Waits for requests that were sent, but not for connections that are opened for cancelled ones.
      await Promise.all(running);
      await pool.destroy();
    },
  };
}

function callOf(
  of: Readonly<{
    settings: HttpSettings;
    url: URL;
    order: OutgoingOrder;
    body: string;
    headers: Readonly<Record<string, string>>;
  }>,
): HttpCall {
  const { settings, url, order, body } = of;
  const traceparent = traceparentOf(order.traceparent);
  return {
    method: settings.method,
    path: `${url.pathname}${url.search}`,
    headers: {
      'content-type': 'application/json',
      ...of.headers,
      'idempotency-key': order.idempotencyKey,
      ...(traceparent === undefined ? {} : { traceparent }),
      ...(settings.sign === undefined
        ? {}
        : { 'x-redrive-signature': signatureOf(body, settings.sign.secret(), new Date()) }),
    },
    body,
    timeoutMs: settings.timeoutMs,
    maxResponseBytes: settings.maxResponseBytes,
    // The server may close an idle connection just when a request is written to it. Whether it read the request is
    // unknown then, and an order that must not be sent twice would need attention for no good reason.
    hasOwnConnection: settings.idempotency === 'none',
  };
}

const unreadableRequest: SendOutcome = {
  end: 'refused',
  code: 'BAD_REQUEST',
  detail: 'the request is not a JSON object',
};

function outcomeOf(
  call: CallEnd,
  settings: HttpSettings,
  order: OutgoingOrder,
  { onError }: SenderOptions,
): SendOutcome {
  try {
    return judgeCall(call, settings, order.idempotencyKey);
  } catch (error) {
    onError?.(error);
    return { end: 'unknown', code: 'UNKNOWN', detail: describe(error) };
  }
}

function judgeCall(call: CallEnd, settings: HttpSettings, idempotencyKey: string): SendOutcome {
  switch (call.end) {
    case 'answered':
      return judgeAnswer(call.answer, settings, idempotencyKey, new Date());
    case 'broken': {
      // If the body counts, half of it is no answer; otherwise the status is enough.
      const { status } = call.answer;
      const isBodyNeeded = settings.response === 'json' && status >= 200 && status <= 299;
      if (!isBodyNeeded) return judgeAnswer(call.answer, settings, idempotencyKey, new Date());
      const detail = `HTTP ${status}, but the response body was cut off: ${describe(call.error)}`;
      return { end: 'unknown', code: 'NETWORK_TIMEOUT', detail };
    }
    case 'lost':
      return { end: 'unknown', code: 'NETWORK_TIMEOUT', detail: describe(call.error) };
    case 'unsent':
      return unsent(call.error);
    case 'withdrawn':
      return stopped;
  }
}

function unsent(error: unknown): SendOutcome {
  switch (codeOf(error)) {
    case 'UND_ERR_INVALID_ARG':
    case 'UND_ERR_NOT_SUPPORTED':
      return misconfigured(describe(error));
    case 'UND_ERR_CLOSED':
    case 'UND_ERR_DESTROYED':
      return stopped;
    case undefined:
    default:
      return { end: 'failed', code: 'NETWORK_TIMEOUT', detail: describe(error) };
  }
}

/** Usually a secret with a line break in a header. It is not the order's fault, so the order is retried. */
function misconfigured(why: string): SendOutcome {
  return { end: 'failed', code: 'UNAUTHORIZED', detail: `not sent: ${why}` };
}

function describe(error: unknown): string {
  return cleanText(messageOf(error), MAX_DETAIL_BYTES);
}

function withoutSecretsIn(secrets: Readonly<Record<string, string>>, outcome: SendOutcome): SendOutcome {
  return 'detail' in outcome ? { ...outcome, detail: withoutSecrets(outcome.detail, secrets) } : outcome;
}
