import { Type, type TSchema } from 'typebox';
import { PaginationSchema, pageParameters } from '../../platform/http/page-schema.ts';
import type { AttemptOutcome } from '../domain/attempts.ts';
import { KEY_PATTERN, MAX_KEY_LENGTH, MIN_KEY_LENGTH } from '../domain/idempotency-key.ts';
import { resolutions, statuses } from '../domain/order.ts';

/** What the routes take and answer; the API's description is made from these. */

const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);
const Timestamp = Type.String({ format: 'date-time', examples: ['2026-02-20T10:30:00.000+00:00'] });
const Id = Type.Integer({ minimum: 1 });
const Digest = Type.String({
  examples: ['sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08'],
});
const StatusSchema = Type.Enum([...statuses]);
const ResolutionSchema = Type.Enum([...resolutions]);

/** A misspelt parameter is told, not ignored. */
const closed = { additionalProperties: false } as const;

const Name = Type.String({ minLength: 1, maxLength: 255 });
const Key = Type.String({
  minLength: MIN_KEY_LENGTH,
  maxLength: MAX_KEY_LENGTH,
  pattern: KEY_PATTERN,
  description: 'Names one effect. Visible ASCII.',
});
const Request = Type.Object({}, { description: 'What the destination is sent; any JSON object.' });
const Instant = Type.String({ maxLength: 64, description: 'ISO 8601 with its zone.' });

/** Checked by hand, so that a wrong id is refused before the database is asked. */
export const IdParams = Type.Object({
  id: Type.String({ maxLength: 1000, description: 'A positive integer.' }),
});
export const KeyParams = Type.Object({ key: Type.String({ maxLength: 1000 }) });

export const OrderListQuery = Type.Object(
  {
    status: Type.Optional(StatusSchema),
    destination: Type.Optional(Name),
    idempotency_key: Type.Optional(Name),
    created_from: Type.Optional(Instant),
    created_to: Type.Optional(Instant),
    needs_person: Type.Optional(
      Type.Literal(true, { description: 'Only dead orders that nobody has decided about.' }),
    ),
    ...pageParameters,
  },
  closed,
);

/** Equal to the key in the body, so that neither a proxy nor a program acts on another one than was meant. */
export const KeyHeaders = Type.Object({
  'idempotency-key': Type.String({ description: 'The same as `idempotency_key` in the body.' }),
});

const TraceId = Type.Optional(
  Type.String({ minLength: 1, maxLength: 255, description: 'By default `trace_id` of the request.' }),
);

export const NewOrderBody = Type.Object(
  {
    destination: Type.Optional(
      Type.String({ minLength: 1, maxLength: 255, description: 'May be left out where there is only one.' }),
    ),
    idempotency_key: Key,
    request: Request,
    ordering_key: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 255,
        description: 'Orders of one key reach their destination one after another.',
      }),
    ),
    trace_id: TraceId,
  },
  closed,
);

const decision = {
  reason: Type.Optional(Type.String({ minLength: 1, maxLength: 1000, pattern: '\\S' })),
  effect_checked: Type.Optional(
    Type.Boolean({
      description: 'You have looked at the destination: the effect is not there, or it is dealt with.',
    }),
  ),
};

export const DecisionBody = Type.Optional(nullable(Type.Object(decision, closed)));

export const SupersedeBody = Type.Object(
  { idempotency_key: Key, request: Request, trace_id: TraceId, ...decision },
  closed,
);

/** Answers are typed by what presents them; their schemas only describe them. */
const accepted = {
  id: Id,
  idempotency_key: Key,
  destination: Type.String(),
  ordering_key: nullable(Type.String()),
  status: Type.Literal('queued'),
  request_digest: Digest,
  created_at: Timestamp,
};

export const AcceptedSchema: TSchema = Type.Object(accepted, { title: 'AcceptedOrder' });

export const CorrectionSchema: TSchema = Type.Object(
  { ...accepted, supersedes_id: Id },
  { title: 'AcceptedCorrection' },
);

const order = {
  id: Id,
  idempotency_key: Type.String(),
  request: Type.Unknown({ description: 'As it is stored; null where a list leaves it out.' }),
  request_digest: Digest,
  status: StatusSchema,
  retry_count: Type.Integer(),
  next_attempt_at: nullable(Type.String({ format: 'date-time', description: 'Only while it waits.' })),
  last_error: nullable(Type.String({ description: '`CODE: detail`.' })),
  created_at: Timestamp,
  updated_at: Timestamp,
  destination: Type.String(),
  ordering_key: nullable(Type.String()),
  ordering_seq: nullable(Type.Integer()),
  held: Type.Boolean({ description: 'Waits behind an earlier order of its ordering key.' }),
  trace_id: nullable(Type.String()),
  traceparent: nullable(Type.String()),
  first_sent_at: nullable(Timestamp),
  in_doubt: Type.Boolean({ description: 'Some attempt may have had its effect without our knowing.' }),
  response: Type.Unknown({ description: 'What the destination answered: status, digest, its own id.' }),
  resolution: nullable(ResolutionSchema),
  needs_person: Type.Boolean({ description: 'Dead, and nobody has decided what becomes of it.' }),
  supersedes_id: nullable(Id),
  superseded_by_id: nullable(Id),
  archived: Type.Boolean(),
  request_omitted: Type.Optional(Type.Literal(true, { description: 'Only in lists: too large to show.' })),
};

const OrderSchema = Type.Object(order, { title: 'Order' });

export const OrderListSchema: TSchema = Type.Object({
  orders: Type.Array(OrderSchema),
  pagination: PaginationSchema,
});

const AuditSchema = Type.Object({
  at: Timestamp,
  status_from: nullable(StatusSchema),
  status_to: StatusSchema,
  retry_count: Type.Integer(),
  last_error: nullable(Type.String()),
  trace_id: nullable(Type.String()),
  broker_order_id: nullable(Type.String()),
  actor: Type.String(),
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

const AttemptSchema = Type.Object({
  no: Type.Integer(),
  started_at: nullable(Timestamp),
  ended_at: nullable(Timestamp),
  outcome: Type.Enum([...attemptOutcomes]),
  error: nullable(Type.String({ description: 'What it ended with, or why it was given back.' })),
  outside_id: nullable(Type.String()),
});

export const ToldOrderSchema: TSchema = Type.Object(
  { ...order, attempts: Type.Array(AttemptSchema), audit: Type.Array(AuditSchema) },
  { title: 'ToldOrder' },
);

const proof = {
  idempotency_key: Type.String(),
  request_digest: Digest,
  status: Type.Enum(['accepted', 'succeeded', 'failed']),
  result_digest: nullable(Digest),
  outside_id: nullable(Type.String({ description: "The destination's own name for what it did." })),
  expires_at: nullable(
    Type.String({
      format: 'date-time',
      description: 'When the key may be used anew; null until the order is sent or resolved.',
    }),
  ),
  created_at: Timestamp,
  updated_at: Timestamp,
  archived: Type.Boolean(),
  archived_at: nullable(Timestamp),
  order_id: Id,
  supersedes_id: nullable(Id),
  superseded_by_id: nullable(Id),
  order: nullable(OrderSchema),
  attempts: Type.Array(AttemptSchema),
};

export const ProofSchema: TSchema = Type.Object(
  {
    ...proof,
    earlier_uses: Type.Array(Type.Object(proof), {
      description: 'A key is free again when its order has been archived.',
    }),
  },
  { title: 'Proof' },
);

export const DestinationsSchema: TSchema = Type.Object({
  destinations: Type.Array(
    Type.Object({
      name: Type.String(),
      configured: Type.Boolean({ description: 'False where orders wait for it, but nobody here knows it.' }),
      internal: nullable(Type.Boolean({ description: 'Made by the system itself: nobody posts to it.' })),
      type: nullable(Type.Enum(['http', 'kafka', 'smtp'])),
      idempotency: nullable(Type.Enum(['none', 'enforced', 'consumer'])),
      throttle: nullable(
        Type.Object({
          rate_per_second: nullable(Type.Number()),
          peak_per_second: nullable(Type.Number()),
          held_until: nullable(Timestamp),
        }),
      ),
      circuit: nullable(
        Type.Object({
          state: Type.Enum(['closed', 'open']),
          opened_at: Type.Optional(Timestamp),
          reason: Type.Optional(Type.String()),
          next_probe_at: Type.Optional(Timestamp),
        }),
      ),
      lag_seconds: nullable(Type.Number({ description: 'The age of the oldest order that waits.' })),
      waiting: Type.Integer(),
      waiting_is_lower_bound: Type.Optional(
        Type.Literal(true, { description: 'Only where more wait than are counted.' }),
      ),
      in_flight: Type.Object({ here: Type.Integer(), all: Type.Integer() }),
    }),
  ),
});
