import { Type, type TSchema } from 'typebox';
import { checkedAs, Masked, nullable, Timestamp } from '../platform/http/schema-parts.ts';
import type { AttemptOutcome } from './domain/attempts.ts';
import { KEY_PATTERN, MAX_KEY_LENGTH, MIN_KEY_LENGTH } from './domain/idempotency-key.ts';
import { resolutions, statuses } from './domain/order.ts';

/** Schemas that the routes of several flows share; the OpenAPI document is generated from them. */

export const Id = Type.Integer({ minimum: 1 });
export const Digest = Type.String({
  examples: ['sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'],
});
export const StatusSchema = Type.Enum([...statuses]);

export const Key = Type.String({
  minLength: MIN_KEY_LENGTH,
  maxLength: MAX_KEY_LENGTH,
  pattern: KEY_PATTERN,
  description: 'Identifies one effect. Visible ASCII.',
  examples: ['order-2026-000118'],
});
export const RequestSchema = Type.Object(
  {},
  {
    description: 'Sent to the destination; any JSON object.',
    examples: [{ symbol: 'USDJPY', intent: 'BUY', qty: 10000 }],
  },
);
export const TraceId = Type.Optional(
  Type.String({ minLength: 1, maxLength: 255, description: 'Defaults to `trace_id` of the request.' }),
);

export const ID_PATTERN = '^[1-9]\\d{0,18}$';

/** `parseOrderId` checks it, so that an invalid id never reaches the database. */
export const IdParams = Type.Object({
  id: Type.String({
    maxLength: 1000,
    description: 'A positive integer.',
    examples: ['118'],
    ...checkedAs({ maxLength: 19, pattern: ID_PATTERN }),
  }),
});

/** The header must equal the key in the body, so that a proxy and the server never act on different keys. */
export const KeyHeaders = Type.Object({
  'idempotency-key': Type.String({
    description: 'Must equal `idempotency_key` in the body.',
    examples: ['order-2026-000118'],
    ...checkedAs({ minLength: MIN_KEY_LENGTH, maxLength: MAX_KEY_LENGTH, pattern: KEY_PATTERN }),
  }),
});

/** Response schemas only describe; the functions in present.ts define what is sent. */
export const acceptedFields = {
  id: Id,
  idempotency_key: Key,
  destination: Type.String({ examples: ['broker'] }),
  ordering_key: nullable(Type.String()),
  status: Type.Literal('queued'),
  request_digest: Digest,
  created_at: Timestamp,
};

export const AcceptedSchema: TSchema = Type.Object(acceptedFields, { title: 'AcceptedOrder' });

const orderFields = {
  id: Id,
  idempotency_key: Type.String({ examples: ['order-2026-000118'] }),
  request: Type.Unknown({
    examples: [{ symbol: 'USDJPY', intent: 'BUY', qty: 10000 }],
    description: 'As stored; null if a list omits it.',
  }),
  request_digest: nullable(Digest),
  status: StatusSchema,
  retry_count: Type.Integer(),
  next_attempt_at: nullable(
    Type.String({ format: 'date-time', description: 'Only while the order is waiting.' }),
  ),
  last_error: nullable(Type.String({ description: '`CODE: detail`.' })),
  created_at: Timestamp,
  updated_at: Timestamp,
  destination: Type.String({ examples: ['broker'] }),
  ordering_key: nullable(Type.String()),
  ordering_seq: nullable(Type.Integer()),
  held: Type.Boolean({ description: 'Blocked by an earlier order of its ordering key.' }),
  trace_id: nullable(Type.String()),
  traceparent: nullable(Type.String()),
  first_sent_at: nullable(Timestamp),
  in_doubt: Type.Boolean({ description: 'An attempt may have had its effect without confirmation.' }),
  response: Type.Unknown({
    examples: [null],
    description: "The destination's answer: status, digest, its own id.",
  }),
  resolution: nullable(Type.Enum([...resolutions])),
  needs_attention: Type.Boolean({ description: 'Dead and not yet resolved.' }),
  supersedes_id: nullable(Id),
  superseded_by_id: nullable(Id),
  created_by: nullable(
    Type.String({
      examples: ['key:k7Qm2xTa'],
      description: 'Who added it; null without authentication, and if it was added in SQL.',
    }),
  ),
  fingerprint: nullable(
    Type.String({
      description: 'Of the last error: the same for errors with the same cause.',
      examples: ['v2:3b0e6c1f9a7d42588c1e0f6a5d9b7c34'],
    }),
  ),
  archived: Type.Boolean(),
  masked: Masked,
  request_omitted: Type.Optional(
    Type.Literal(true, {
      description: 'Too large to show: more than 64 KiB in lists, more than 16 MiB elsewhere.',
    }),
  ),
  response_omitted: Type.Optional(
    Type.Literal(true, {
      description: 'Too large to show: more than 16 KiB in lists, more than 16 MiB elsewhere.',
    }),
  ),
};

export const OrderSchema = Type.Object(orderFields, { title: 'Order' });

const AuditSchema = Type.Object({
  at: Timestamp,
  status_from: nullable(StatusSchema),
  status_to: StatusSchema,
  retry_count: Type.Integer(),
  last_error: nullable(Type.String()),
  trace_id: nullable(Type.String()),
  broker_order_id: nullable(Type.String()),
  actor: Type.String({ examples: ['alice@example.com'] }),
  reason: nullable(Type.String()),
});

const attemptOutcomes = [
  'running',
  'sent',
  'failed',
  'dead',
  'released',
  'lease_expired',
  'late_success',
  'already_sent',
  'unknown',
] as const satisfies readonly AttemptOutcome[];

export const AttemptSchema = Type.Object({
  no: Type.Integer(),
  started_at: nullable(Timestamp),
  ended_at: nullable(Timestamp),
  outcome: Type.Enum([...attemptOutcomes]),
  error: nullable(Type.String({ description: 'The error, or why the order was released.' })),
  outside_id: nullable(Type.String()),
});

const LaneSchema = Type.Object(
  {
    blocked_by_id: nullable(
      Type.Integer({
        minimum: 1,
        description: 'The first order of the key that is neither sent nor resolved.',
      }),
    ),
    behind: Type.Integer({ minimum: 0, description: 'How many orders of the key wait for this one.' }),
    behind_is_lower_bound: Type.Optional(
      Type.Literal(true, { description: 'Set if more orders wait than were counted.' }),
    ),
  },
  { description: 'The place in its ordering key; null without one, and once it is sent or resolved.' },
);

export const OrderDetailsSchema: TSchema = Type.Object(
  {
    ...orderFields,
    lane: nullable(LaneSchema),
    attempts: Type.Array(AttemptSchema),
    audit: Type.Array(AuditSchema),
  },
  { title: 'OrderDetails' },
);
