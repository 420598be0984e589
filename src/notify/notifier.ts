import { dayMs } from '../kernel/duration.ts';
import { mailBody, slackBody, webhookBody, type Message, type Source } from './message.ts';

/** An entry of `notify` in the configuration. */
export type Notifier = AnyNotifier & Channel;

type AnyNotifier = Readonly<{
  name: string;
  /** The minimum time between two messages of a group. */
  cooldownMs: number;
  /** The slices whose events it receives. */
  slices: readonly string[];
  timeoutMs: number;
}>;

type Channel =
  | Readonly<{ type: 'webhook'; url: string; secret: () => string }>
  | Readonly<{ type: 'slack'; url: () => string }>
  | (Readonly<{ type: 'email' }> & MailServer);

type MailServer = Readonly<{
  host: string;
  port: number;
  security: 'implicit' | 'starttls' | 'none';
  user: string | undefined;
  password: (() => string) | undefined;
  from: string;
  to: readonly string[];
}>;

/** By name and not by position, so that pending messages do not go to another notifier when the list changes. */
export function destinationName({ name }: Notifier): string {
  return `_notify_${name}`;
}

/**
 * A duplicate message does less harm than a missing one, so a message in doubt is always sent again, with the same id.
 * A receiver may be down for a night: with the default backoff this many retries take a day.
 */
const deliveryPolicy = { maxInFlight: 4, maxAgeMs: 7 * dayMs, retryMax: 340, schema: undefined };

const http = {
  ...deliveryPolicy,
  type: 'http' as const,
  method: 'POST' as const,
  headers: {},
  tls: undefined,
  body: 'request' as const,
  response: 'any' as const,
  maxResponseBytes: 4096,
  outsideIdField: 'id',
  idempotency: 'enforced' as const,
  dedupWindowMs: 3650 * dayMs,
  conflict: 'processed' as const,
  statusUrl: undefined,
  status: undefined,
};

/** The outbox destination of a notifier. */
export function destinationOf(notifier: Notifier, name: string) {
  const { timeoutMs } = notifier;
  switch (notifier.type) {
    case 'webhook':
      return { ...http, name, timeoutMs, url: notifier.url, sign: { secret: notifier.secret } };
    case 'slack':
      return { ...http, name, timeoutMs, url: notifier.url(), isUrlSecret: true };
    case 'email': {
      const { host, port, security, user, password, from, to } = notifier;
      return {
        ...deliveryPolicy,
        type: 'smtp' as const,
        name,
        timeoutMs,
        host,
        port,
        security,
        user,
        password,
        from,
        to,
      };
    }
  }
}

export type NotifyDestination = ReturnType<typeof destinationOf>;

/** The message as the request of an order to the notifier's destination. */
export function requestTo({ type }: Notifier, source: Source, message: Message): object {
  switch (type) {
    case 'webhook':
      return webhookBody(source, message);
    case 'slack':
      return slackBody(source, message);
    case 'email':
      return mailBody(source, message);
  }
}
