import type { ConflictProfile, StatusProfile } from '../resolve/destinations.ts';
import { duration, filePath, listOf, oneOf, refine, text, wholeNumber, type Format } from './format.ts';
import { headerName, headers } from './header-format.ts';
import { host } from './host-format.ts';
import { chosenName, mapOf, orMap, shapeOf, variantsOf, type ValueOf } from './map-format.ts';
import { secretValue } from '../layers/secret-value.ts';
import { optional, withDefault } from '../setting.ts';
import { topicName } from './topic-format.ts';

const MIB = 1024 * 1024;

export const timeoutMs = (): Format<number> => wholeNumber(1, 600_000);

/** What every kind of destination has. Without a value some keys follow others: see resolve-destinations.ts. */
const common = {
  schema: optional(text('order, or the path of a JSON file', (value) => value !== '')),
  max_in_flight: optional(wholeNumber(1, 100_000)),
  max_age: optional(duration('1s', '365d')),
};

const http = {
  ...common,
  url: callUrl(),
  method: withDefault(oneOf('POST', 'PUT', 'PATCH'), 'POST'),
  headers: withDefault(headers(), {}),
  timeout_ms: withDefault(timeoutMs(), 5000),
  tls: withDefault(
    shapeOf({ ca: optional(filePath()), cert: optional(filePath()), key: optional(filePath()) }),
    {},
  ),
  body: withDefault(oneOf('request', 'order'), 'request'),
  response: withDefault(oneOf('json', 'any'), 'json'),
  max_response_bytes: withDefault(wholeNumber(1, 16 * MIB), 65_536),
  outside_id_field: withDefault(fieldName(), 'broker_order_id'),
  idempotency: withDefault(oneOf('none', 'enforced'), 'none'),
  dedup_window: withDefault(duration('1s', '365d'), '24h'),
  conflict: optional(conflictProfile()),
  status_url: optional(statusUrl()),
  status: optional(statusProfile()),
};

const kafka = {
  ...common,
  topic: topicName(),
  key: withDefault(oneOf('ordering_key', 'idempotency_key', 'none'), 'ordering_key'),
  timeout_ms: optional(timeoutMs()),
};

/** A mail server and who gets its mails. */
export const mailServer = {
  host: host(),
  port: optional(wholeNumber(1, 65_535)),
  security: withDefault(oneOf('starttls', 'implicit', 'none'), 'starttls'),
  user: optional(text('1 to 255 characters', (value) => value.length >= 1 && value.length <= 255)),
  password: optional(secretValue()),
  from: mailAddress(),
  to: listOf(mailAddress(), { min: 1, single: true }),
  timeout_ms: withDefault(timeoutMs(), 10_000),
};

const smtp = { ...common, ...mailServer };

const destination = variantsOf('type', { http, kafka, smtp });

/** A destination as it is written, each value parsed and nothing looked up. */
export type DestinationValues = ValueOf<typeof destination>;

export const destinations = (): Format<Readonly<Record<string, DestinationValues>>> =>
  mapOf(chosenName('destinations'), destination);

/** The authority may not hold credentials: a URL is shown in lists and logs. A fragment would never be sent. */
export function callUrl(): Format<string> {
  return refine(
    text('an http:// or https:// URL', (value) => /^https?:\/\/[^/\\?#]/i.test(value) && URL.canParse(value)),
    (value) => {
      const [authority = ''] = /^https?:\/\/[^/\\?#]*/i.exec(value) ?? [];
      if (authority.includes('@')) return 'must not hold a user or a password: put credentials into headers';
      return value.includes('#') ? 'must not have a fragment (#)' : undefined;
    },
  );
}

function statusUrl(): Format<string> {
  return refine(callUrl(), (value) => {
    const { pathname = '', search = '' } = URL.parse(value.replaceAll('{key}', '%00key')) ?? {};
    return `${pathname}${search}`.includes('%00key')
      ? undefined
      : 'must hold {key} in its path or query, where the idempotency key goes';
  });
}

/** The name of a field of a JSON body; with dots of one deeper inside it. */
function fieldName(): Format<string> {
  return text('the name of a field', (value) => value.length >= 1 && value.length <= 200);
}

function words(): Format<readonly string[]> {
  const word = text('text of 1 to 200 characters', (value) => value.length >= 1 && value.length <= 200);
  return listOf(word, { single: true });
}

function conflictProfile(): Format<ConflictProfile> {
  const byValue = refine(
    shapeOf({
      field: optional(fieldName()),
      header: optional(headerName()),
      processed: withDefault(words(), []),
      running: withDefault(words(), []),
    }),
    ({ field, header, processed, running }) => {
      if ((field === undefined) === (header === undefined)) return 'must have either field or header';
      if (processed.length + running.length === 0) return 'must have values in processed or running';
      return overlap(processed, running) ? 'must not have one value in processed and running' : undefined;
    },
  );
  const format = orMap(oneOf('processed', 'running'), byValue);
  return {
    ...format,
    parse(value) {
      const parsed = format.parse(value);
      if (!parsed.ok) return { ok: false, issues: parsed.issues };
      if (typeof parsed.value === 'string') return { ok: true, value: parsed.value };
      const { field, header = '', processed, running } = parsed.value;
      return { ok: true, value: { in: field === undefined ? { header } : { field }, processed, running } };
    },
  };
}

function statusProfile(): Format<StatusProfile> {
  return refine(
    shapeOf({
      field: fieldName(),
      done: withDefault(words(), []),
      absent: withDefault(words(), []),
    }),
    ({ done, absent }) => {
      if (done.length + absent.length === 0) return 'must have values in done or absent';
      return overlap(done, absent) ? 'must not have one value in done and absent' : undefined;
    },
  );
}

const overlap = (some: readonly string[], others: readonly string[]): boolean =>
  some.some((each) => others.includes(each));

/** `ops@example.com`, or `Operations <ops@example.com>`. */
function mailAddress(): Format<string> {
  return text(
    'a mail address',
    (value) =>
      /^(?:[^<>@",;]*<)?[^\s<>@",;]+@[^\s<>@",;]+>?$/.test(value) &&
      value.includes('<') === value.endsWith('>'),
  );
}
