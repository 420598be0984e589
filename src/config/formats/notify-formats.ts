import { callUrl, mailServer, timeoutMs } from './destination-formats.ts';
import { duration, listOf, oneOf, refine, text, type Format } from './format.ts';
import { variantsOf, type ValueOf } from './map-format.ts';
import { secretValue } from '../layers/secret-value.ts';
import { optional, withDefault } from '../setting.ts';

/** Each is a destination of its own, and each person who is told too often stops reading. */
const MAX_NOTIFIERS = 20;

const notifiableSlices = ['dlq', 'outbox', 'jobs', 'saga'] as const;

const common = {
  /** Without one it is made of the type and the address: see resolve-notify.ts. */
  name: optional(
    text('1 to 40 characters of a-z, 0-9, _ and -, beginning with a letter', (value) =>
      /^[a-z][a-z\d_-]{0,39}$/.test(value),
    ),
  ),
  /** The least time between two messages about the same thing. */
  cooldown: withDefault(duration('1s', '7d'), '5m'),
  slices: withDefault(listOf(oneOf(...notifiableSlices), { min: 1, single: true }), notifiableSlices),
};

const notifier = variantsOf('type', {
  webhook: {
    ...common,
    url: callUrl(),
    secret: secretValue(),
    timeout_ms: withDefault(timeoutMs(), 5000),
  },
  /** Whoever knows the address of such a webhook may write there, so the address is a secret. */
  slack: { ...common, url: secretValue(), timeout_ms: withDefault(timeoutMs(), 5000) },
  email: { ...common, ...mailServer },
});

/** A notifier as it is written, each value parsed and nothing looked up. */
export type NotifierValues = ValueOf<typeof notifier>;

export const notifiers = (): Format<readonly NotifierValues[]> =>
  refine(listOf(notifier), (value) =>
    value.length > MAX_NOTIFIERS ? `must be a list of at most ${MAX_NOTIFIERS} items` : undefined,
  );

/** Links are made by putting a path behind it. */
export const publicUrl = (): Format<string> =>
  refine(callUrl(), (value) => (value.includes('?') ? 'must not have a query (?)' : undefined));
