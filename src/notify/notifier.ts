import { mailBody, slackBody, webhookBody, type Message, type Speaker } from './message.ts';

/** Somebody to be told, as `compose` hands it over from the configuration. */
export type Notifier = AnyNotifier & Way;

type AnyNotifier = Readonly<{
  name: string;
  /** The least time between two messages about the same thing. */
  cooldownMs: number;
  /** Whose events it is told of. */
  slices: readonly string[];
  timeoutMs: number;
}>;

type Way =
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

/** Not by the place in the list: what waits for a notifier must not go to another one when the list changes. */
export function destinationName({ name }: Notifier): string {
  return `_notify_${name}`;
}

const DAY_MS = 86_400_000;

/**
 * A message that comes twice does less harm than one that does not come, so what is in doubt is always sent again,
 * with the same id. And a receiver may be away for a night: with the usual backoff this many retries take a day.
 */
const patience = { maxInFlight: 4, maxAgeMs: 7 * DAY_MS, retryMax: 340, schema: undefined };

const http = {
  ...patience,
  type: 'http' as const,
  method: 'POST' as const,
  headers: {},
  tls: undefined,
  body: 'request' as const,
  response: 'any' as const,
  maxResponseBytes: 4096,
  outsideIdField: 'id',
  idempotency: 'enforced' as const,
  dedupWindowMs: 3650 * DAY_MS,
  conflict: 'processed' as const,
  statusUrl: undefined,
  status: undefined,
};

/** The destination of the outbox that a notifier is. */
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
        ...patience,
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

/** The message as the notifier's destination takes it. */
export function requestTo({ type }: Notifier, speaker: Speaker, message: Message): object {
  switch (type) {
    case 'webhook':
      return webhookBody(speaker, message);
    case 'slack':
      return slackBody(speaker, message);
    case 'email':
      return mailBody(speaker, message);
  }
}
