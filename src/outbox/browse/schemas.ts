import { Type, type TSchema } from 'typebox';
import { PaginationSchema, pageParameters } from '../../platform/http/page-schema.ts';
import { countedTotal, facetsOf } from '../../platform/http/facet-schemas.ts';
import { closed, Instant, Masked, nullable, Timestamp } from '../../platform/http/schema-parts.ts';
import { statuses } from '../domain/order.ts';
import { AttemptSchema, Digest, Id, OrderSchema, StatusSchema } from '../schemas.ts';
import { facetFields } from './count-facets.ts';

export const KeyParams = Type.Object({
  key: Type.String({ examples: ['order-2026-000118'], maxLength: 1000 }),
});

const Name = Type.String({ minLength: 1, maxLength: 255 });

const AsOf = {
  ...Timestamp,
  description: 'The time of the database when it was read: the answer is at least as new.',
};

const filterParameters = {
  status: Type.Optional(
    Type.Array(StatusSchema, {
      minItems: 1,
      maxItems: statuses.length,
      description: 'May be repeated: one of these.',
    }),
  ),
  destination: Type.Optional(Name),
  ordering_key: Type.Optional(Name),
  idempotency_key: Type.Optional(Name),
  error_code: Type.Optional(
    Type.String({
      pattern: '^[A-Z0-9_]{1,64}$',
      maxLength: 64,
      description: 'The code with which the last error begins.',
      examples: ['NETWORK_TIMEOUT'],
    }),
  ),
  fingerprint: Type.Optional(
    Type.String({ minLength: 1, maxLength: 100, description: 'Of the last error.' }),
  ),
  created_from: Type.Optional(Instant),
  created_to: Type.Optional(Instant),
  needs_attention: Type.Optional(Type.Boolean({ description: 'Whether it is dead and not yet resolved.' })),
  in_doubt: Type.Optional(
    Type.Boolean({ description: 'Whether an attempt may have had its effect though it is not sent.' }),
  ),
  held: Type.Optional(
    Type.Boolean({ description: 'Whether it waits for an earlier order of its ordering key.' }),
  ),
};

export const OrderFilterQuery = Type.Object(filterParameters, closed);

export const OrderListQuery = Type.Object({ ...filterParameters, ...pageParameters }, closed);

export const OrderListSchema: TSchema = Type.Object({
  orders: Type.Array(OrderSchema),
  pagination: PaginationSchema,
  as_of: AsOf,
});

export const FacetsSchema: TSchema = Type.Object(
  {
    ...countedTotal,
    facets: facetsOf(facetFields, 'queued'),
    as_of: AsOf,
  },
  { title: 'OrderFacets' },
);

const proofFields = {
  idempotency_key: Type.String({ examples: ['order-2026-000118'] }),
  request_digest: nullable(Digest),
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
  masked: Masked,
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
      asks_status: nullable(
        Type.Boolean({ description: 'It can be asked whether an order has had its effect.' }),
      ),
      retry_max: nullable(Type.Integer({ description: 'Retries after the first send.' })),
      lag_seconds: nullable(Type.Number({ description: 'Age of the oldest waiting order.' })),
      lag_p99_seconds: nullable(
        Type.Number({ description: '99 of 100 waiting orders are younger; of those that were counted.' }),
      ),
      waiting: Type.Integer(),
      waiting_is_lower_bound: Type.Optional(
        Type.Literal(true, { description: 'Set if more orders wait than were counted.' }),
      ),
      needs_attention: Type.Integer({ description: 'Dead orders that are not yet resolved.' }),
      needs_attention_is_lower_bound: Type.Optional(
        Type.Literal(true, { description: 'Set if there are more than were counted.' }),
      ),
      in_flight: Type.Object({
        here: Type.Integer(),
        all: Type.Integer(),
        limit_here: nullable(Type.Integer({ description: 'How many this process sends at once.' })),
      }),
    }),
  ),
  as_of: AsOf,
});
