import { Type, type TSchema } from 'typebox';
import { PaginationSchema, pageParameters } from '../../platform/http/page-schema.ts';
import { closed, Instant, nullable, Timestamp } from '../../platform/http/schema-parts.ts';
import { AttemptSchema, Digest, Id, OrderSchema, StatusSchema } from '../schemas.ts';

export const KeyParams = Type.Object({
  key: Type.String({ examples: ['order-2026-000118'], maxLength: 1000 }),
});

const Name = Type.String({ minLength: 1, maxLength: 255 });

export const OrderListQuery = Type.Object(
  {
    status: Type.Optional(StatusSchema),
    destination: Type.Optional(Name),
    idempotency_key: Type.Optional(Name),
    fingerprint: Type.Optional(
      Type.String({ minLength: 1, maxLength: 100, description: 'Of the last error.' }),
    ),
    created_from: Type.Optional(Instant),
    created_to: Type.Optional(Instant),
    needs_attention: Type.Optional(
      Type.Literal(true, { description: 'Only dead orders that are not yet resolved.' }),
    ),
    ...pageParameters,
  },
  closed,
);

export const OrderListSchema: TSchema = Type.Object({
  orders: Type.Array(OrderSchema),
  pagination: PaginationSchema,
});

const proofFields = {
  idempotency_key: Type.String({ examples: ['order-2026-000118'] }),
  request_digest: Digest,
  status: Type.Enum(['accepted', 'succeeded', 'failed']),
  result_digest: nullable(Digest),
  outside_id: nullable(Type.String({ description: "The destination's own id for the effect." })),
  expires_at: nullable(
    Type.String({
      format: 'date-time',
      description: 'When the key can be used again; null until the order is sent or resolved.',
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
    ...proofFields,
    earlier_uses: Type.Array(Type.Object(proofFields), {
      description: 'Earlier orders of this key. A key can be used again once its order is archived.',
    }),
  },
  { title: 'Proof' },
);

export const DestinationsSchema: TSchema = Type.Object({
  destinations: Type.Array(
    Type.Object({
      name: Type.String({ examples: ['broker'] }),
      configured: Type.Boolean({
        description: 'False if orders wait for it but it is not configured in this process.',
      }),
      internal: nullable(
        Type.Boolean({ description: 'Used by the system itself; callers cannot post to it.' }),
      ),
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
      lag_seconds: nullable(Type.Number({ description: 'Age of the oldest waiting order.' })),
      waiting: Type.Integer(),
      waiting_is_lower_bound: Type.Optional(
        Type.Literal(true, { description: 'Set if more orders wait than were counted.' }),
      ),
      in_flight: Type.Object({ here: Type.Integer(), all: Type.Integer() }),
    }),
  ),
});
