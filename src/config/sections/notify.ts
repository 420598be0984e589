import { Type, type StaticDecode } from 'typebox';

import { callUrl } from '../formats/host-format.ts';
import { flawOfLogin, mailServer, timeoutMs } from '../formats/mail-server.ts';
import {
  duration,
  listOf,
  oneOf,
  oneOrMore,
  optional,
  text,
  withRule,
  type About,
} from '../formats/value.ts';
import type { InCode } from '../in-code.ts';
import { secretValue } from '../layers/secret-value.ts';
import { reasonAgainst, type Node } from '../reason-against.ts';

/** Each is a destination of its own, and each person who is told too often stops reading. */
const MAX_NOTIFIERS = 20;

const notifiableSlices = ['dlq', 'outbox', 'jobs', 'saga'] as const;

const common = {
  name: optional(
    text({
      what: '1 to 40 characters of a-z, 0-9, _ and -, beginning with a letter',
      pattern: '^[a-z][a-z\\d_-]{0,39}$',
      otherwise: 'type and digest of the address',
      description: '1 to 40 characters of `a-z`, `0-9`, `_` and `-`, starting with a letter; unique',
    }),
  ),
  cooldown: duration('1s', '7d', {
    default: '5m',
    description:
      '1 s to 7 d. The first event of a slice, kind and subject (topic, destination, queue, workflow) is sent at once; later ones are sent as one summary at the end of the cool-down',
  }),
  slices: oneOrMore(oneOf(notifiableSlices), {
    default: notifiableSlices,
    description: 'slices whose events are sent',
  }),
};

/** A shorter one can be found by trying. */
const MIN_SIGNING_SECRET = 8;

const reasonAgainstSigning = (value: string): string | undefined =>
  value.length >= MIN_SIGNING_SECRET && !/\p{Cc}/u.test(value)
    ? undefined
    : `one line of at least ${MIN_SIGNING_SECRET} characters`;

const address: Node = callUrl();

const reasonAgainstUrl = (value: string): string | undefined =>
  (reasonAgainst(address, value) ?? address.rule?.(value as never, '')) === undefined
    ? undefined
    : 'an http:// or https:// URL without a user, a password or a fragment';

const webhook = Type.Object({
  type: Type.Literal('webhook', { description: 'sends a signed POST with JSON' }),
  ...common,
  url: callUrl({ description: 'URL without credentials' }),
  secret: secretValue(reasonAgainstSigning, {
    description:
      'key of the signature: at least 8 characters, or `{ file: /path }`; a changed file is read within a second',
  }),
  timeout_ms: timeoutMs({ default: 5000 }),
});

/** Whoever knows the address of such a webhook may write there, so the address is a secret. */
const slack = Type.Object({
  type: Type.Literal('slack', {
    description: 'incoming webhook of Slack, Mattermost and others that accept `{"text": …}`',
  }),
  ...common,
  url: secretValue(reasonAgainstUrl, { description: 'a secret: the address, or `{ file: /path }`' }),
  timeout_ms: timeoutMs({ default: 5000 }),
});

const email = withRule(
  Type.Object({ type: Type.Literal('email', { description: 'sends mail' }), ...common, ...mailServer }),
  flawOfLogin,
);

const notifier = Type.Union([webhook, slack, email]);

export type NotifierValues = InCode<StaticDecode<typeof notifier>>;

export const notifiers = (about: About) =>
  listOf(notifier, {
    default: [],
    maxItems: MAX_NOTIFIERS,
    examples: [
      [
        {
          name: 'on-call',
          type: 'webhook',
          url: 'https://hooks.example.com/redrive',
          secret: { file: '/vault/secrets/hook' },
        },
        {
          type: 'slack',
          url: { file: '/vault/secrets/slack-url' },
          cooldown: '15m',
          slices: ['jobs', 'outbox'],
        },
        {
          type: 'email',
          host: 'mail.example.com',
          from: 'redrive@example.com',
          to: ['ops@example.com'],
        },
      ],
    ],
    ...about,
  });
