import { Type, type StaticDecode } from 'typebox';

import { headerName, headers } from '../formats/header-format.ts';
import { callUrl } from '../formats/host-format.ts';
import { flawOfLogin, mailServer, timeoutMs } from '../formats/mail-server.ts';
import { chosenName, mapOf } from '../formats/named-map.ts';
import { requestSchema } from '../formats/request-schema.ts';
import { topicName } from '../formats/topic-format.ts';
import {
  decoded,
  duration,
  MIB,
  oneOf,
  oneOrMore,
  optional,
  text,
  wholeNumber,
  withRule,
  type About,
} from '../formats/value.ts';
import type { InCode } from '../in-code.ts';
import { urlTlsFiles } from '../layers/tls-files.ts';

/** What every kind of destination has. */
const common = {
  max_in_flight: optional(
    wholeNumber(1, 100_000, {
      otherwise: '`batch_size` x `parallelism`',
      description: 'orders being sent at the same time, per process',
    }),
  ),
  max_age: optional(
    duration('1s', '365d', {
      otherwise: '`outbox.max_age`',
      description: 'how long an order is retried that gets only 429 answers',
    }),
  ),
  schema: optional(
    requestSchema({
      description:
        'JSON Schema for requests: `order` ([config/schemas/order.json](../../config/schemas/order.json)) or the path of a JSON file',
    }),
  ),
};

/** The name of a field of a JSON body; with dots of one deeper inside it. */
const fieldName = (about: About = {}) =>
  text({ what: 'the name of a field', pattern: '^.{1,200}$', ...about });

const words = (description: string) =>
  oneOrMore(text({ what: 'text of 1 to 200 characters', pattern: '^.{1,200}$' }), {
    minItems: 0,
    default: [],
    description,
  });

const overlap = (some: readonly string[], others: readonly string[]): boolean =>
  some.some((each) => others.includes(each));

const conflictByValue = decoded(
  withRule(
    Type.Object({
      field: optional(fieldName({ description: 'field of the answer; either this or `header`' })),
      header: optional(headerName({ description: 'header of the answer' })),
      processed: words('values that mean: already done'),
      running: words('values that mean: try later'),
    }),
    ({ field, header, processed, running }) => {
      if ((field === undefined) === (header === undefined)) return 'must have either field or header';
      if (processed.length + running.length === 0) return 'must have values in processed or running';
      return overlap(processed, running) ? 'must not have one value in processed and running' : undefined;
    },
  ),
  ({ field, header = '', processed, running }) => ({
    in: field === undefined ? { header } : { field },
    processed,
    running,
  }),
);

const statusProfile = withRule(
  Type.Object(
    {
      field: fieldName({ description: 'field of the answer' }),
      done: words('values that mean: the order took effect'),
      absent: words('values that mean: the order is not known'),
    },
    {
      otherwise: '2xx: done, 404: absent',
      description: '`{ field: …, done: […], absent: […] }`: decide by a field of the answer instead',
    },
  ),
  ({ done, absent }) => {
    if (done.length + absent.length === 0) return 'must have values in done or absent';
    return overlap(done, absent) ? 'must not have one value in done and absent' : undefined;
  },
);

const statusUrl = callUrl({
  rule(value) {
    const { pathname = '', search = '' } = URL.parse(value.replaceAll('{key}', '%00key')) ?? {};
    return `${pathname}${search}`.includes('%00key')
      ? undefined
      : 'must hold {key} in its path or query, where the idempotency key goes';
  },
  description:
    'URL to query for an order in doubt that must not be sent again; `{key}` is replaced by the idempotency key. Without it, such an order is dead with `UNKNOWN`',
});

const http = Type.Object({
  type: Type.Literal('http'),
  url: callUrl({
    description: '`http://` or `https://`, without credentials; put those into `headers`',
  }),
  method: oneOf(['POST', 'PUT', 'PATCH'], { default: 'POST', description: 'method of the request' }),
  headers: headers({
    description:
      '`Name: value`, or `Name: { file: /path }` for a file that contains the whole value. A changed file is read within a second; if it is missing or empty, the last value is used. Values are never logged. `Idempotency-Key`, `traceparent`, `Host`, `Content-Length` and other headers of the request itself cannot be set',
  }),
  timeout_ms: timeoutMs({ default: 5000 }),
  tls: urlTlsFiles(),
  body: oneOf(['request', 'order'], {
    default: 'request',
    description:
      '`order`: one flat object with `idempotency_key` and `trace_id` next to the fields of the request',
  }),
  response: oneOf(['json', 'any'], {
    default: 'json',
    description:
      '`json`: a 2xx is a success if its body is empty, or JSON that does not name a different key; `any`: every 2xx is a success',
  }),
  max_response_bytes: wholeNumber(1, 16 * MIB, {
    default: 65_536,
    description: 'the rest of a longer answer is not read',
  }),
  outside_id_field: fieldName({
    default: 'broker_order_id',
    description:
      "field of the answer that contains the receiver's id; dots select nested fields, as in `result.id`",
  }),
  idempotency: oneOf(['none', 'enforced'], {
    default: 'none',
    description:
      '`enforced`: the receiver has one effect per `Idempotency-Key` within `dedup_window`. Set it only if that is true: orders in doubt (after a timeout, 500, 502, …) are then sent again',
  }),
  dedup_window: duration('1s', '365d', {
    default: '24h',
    description: 'time since the first attempt; applies to `enforced` only',
  }),
  conflict: optional(
    Type.Union([oneOf(['processed', 'running']), conflictByValue], {
      description:
        'meaning of a 409: `processed` (already done), `running` (try later), or `{ field: … }` or `{ header: … }` with the values for each, `processed: […]` and `running: […]`. Any other 409 leaves the order in doubt',
    }),
  ),
  status_url: optional(statusUrl),
  status: optional(statusProfile),
  ...common,
});

const kafka = Type.Object({
  type: Type.Literal('kafka', { description: 'orders wait while Kafka is disabled' }),
  topic: topicName({ description: 'topic of the records' }),
  key: oneOf(['ordering_key', 'idempotency_key', 'none'], {
    default: 'ordering_key',
    description: 'key of the record',
  }),
  timeout_ms: optional(timeoutMs({ otherwise: '`kafka.publish_timeout`' })),
  ...common,
});

const smtp = withRule(Type.Object({ type: Type.Literal('smtp'), ...mailServer, ...common }), flawOfLogin);

const destination = Type.Union([http, kafka, smtp]);

/** A destination by itself; what follows from other keys is in resolve-destinations.ts. */
export type DestinationValues = InCode<StaticDecode<typeof destination>>;

export const destinations = (about: About) =>
  mapOf(chosenName('destinations'), destination, {
    default: {},
    examples: [
      {
        broker: {
          type: 'http',
          url: 'https://broker.example.com/orders',
          headers: { Authorization: { file: '/vault/secrets/broker-token' } },
          idempotency: 'enforced',
          dedup_window: '24h',
          conflict: 'processed',
          schema: 'order',
        },
        orders_topic: { type: 'kafka', topic: 'orders.events.v1' },
        operators: {
          type: 'smtp',
          host: 'mail.example.com',
          from: 'redrive@example.com',
          to: ['ops@example.com'],
        },
      },
    ],
    ...about,
  });
