import { createHash } from 'node:crypto';

import type { Check } from '../check.ts';
import { callUrl } from '../formats/destination-formats.ts';
import type { SmtpDestination } from './destinations.ts';
import type { NotifierValues } from '../formats/notify-formats.ts';
import { resolveMailServer } from './resolve-destinations.ts';
import { openSecret, type SecretValue } from '../layers/secret-value.ts';
import { Secret } from '../layers/secret.ts';

/** Who is told, by which way. Secrets are functions: one may come from a file that changes, and none may be logged. */
export type NotifierConfig = WebhookNotifier | SlackNotifier | EmailNotifier;

type AnyNotifier = Readonly<{
  /** Stays the same wherever the notifier stands in the list: what waits for it is stored under this name. */
  name: string;
  cooldownMs: number;
  slices: readonly string[];
  timeoutMs: number;
}>;

export type WebhookNotifier = AnyNotifier & Readonly<{ type: 'webhook'; url: string; secret: () => string }>;

export type SlackNotifier = AnyNotifier & Readonly<{ type: 'slack'; url: () => string }>;

export type EmailNotifier = AnyNotifier &
  Readonly<{ type: 'email' }> &
  Pick<SmtpDestination, 'host' | 'port' | 'security' | 'user' | 'password' | 'from' | 'to'>;

export function resolveNotify(
  values: readonly NotifierValues[],
  { leaseMs }: Readonly<{ leaseMs: number }>,
  check: Check,
): readonly NotifierConfig[] {
  const names = values.map(nameOf);
  return values.flatMap((each, index) => {
    const path = `notify[${index}]`;
    const name = nameOf(each);
    const first = names.indexOf(name);
    if (first < index)
      check.report(
        [`${path}.name`],
        `${name} is also the name of notify[${first}]: give each a name of its own`,
      );
    // A lease that ends while a call may still be under way would let two processes send one message.
    if (each.timeoutMs >= leaseMs)
      check.report(
        [`${path}.timeout_ms`, 'outbox.stuck_threshold_min'],
        'must be less than outbox.stuck_threshold_min',
      );
    return resolve(path, { ...each, name }, check) ?? [];
  });
}

function nameOf(values: NotifierValues): string {
  if (values.name !== undefined) return values.name;
  const digest = createHash('sha256').update(addressOf(values)).digest('hex');
  return `${values.type}_${digest.slice(0, 8)}`;
}

/** Who is told, as it is written. By which mail server, and what stands in a file of secrets, may change. */
function addressOf(values: NotifierValues): string {
  switch (values.type) {
    case 'webhook':
      return values.url;
    case 'slack':
      return values.url instanceof Secret ? values.url.reveal() : values.url.file;
    case 'email':
      return values.to.toSorted().join();
  }
}

/** Undefined where a problem was reported. */
function resolve(
  path: string,
  values: NotifierValues & { name: string },
  check: Check,
): NotifierConfig | undefined {
  switch (values.type) {
    case 'webhook': {
      const secret = open(`${path}.secret`, values.secret, { reasonAgainst: reasonAgainstSigning, check });
      return secret && { ...values, secret };
    }
    case 'slack': {
      const url = open(`${path}.url`, values.url, { reasonAgainst: reasonAgainstUrl, check });
      return url && { ...values, url };
    }
    case 'email':
      return { ...values, ...resolveMailServer(path, values, check) };
  }
}

function open(
  path: string,
  value: SecretValue,
  { reasonAgainst, check }: Readonly<{ reasonAgainst: (value: string) => string | undefined; check: Check }>,
): (() => string) | undefined {
  const opened = openSecret(value, reasonAgainst);
  if (opened.ok) return opened.value;
  check.report([`${path}${opened.at}`], opened.reason);
  return undefined;
}

/** A shorter one can be found by trying. */
const MIN_SIGNING_SECRET = 8;

const reasonAgainstSigning = (value: string): string | undefined =>
  value.length >= MIN_SIGNING_SECRET && !/\p{Cc}/u.test(value)
    ? undefined
    : `one line of at least ${MIN_SIGNING_SECRET} characters`;

const reasonAgainstUrl = (value: string): string | undefined =>
  callUrl().parse(value).ok
    ? undefined
    : 'an http:// or https:// URL without a user, a password or a fragment';
