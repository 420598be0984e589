import { Type, type TSchema } from 'typebox';
import { PaginationSchema, pageParameters } from '../../platform/http/page-schema.ts';
import { AsOf, closed, nullable, Timestamp } from '../../platform/http/schema-parts.ts';
import { trendHours } from '../domain/group-badges.ts';
import { statuses } from '../domain/message.ts';

const FingerprintText = Type.String({
  minLength: 1,
  maxLength: 255,
  examples: ['v2:3b0e6c1f9a7d42588c1e0f6a5d9b7c34'],
});

export const GroupParams = Type.Object({ fingerprint: FingerprintText });

export const GroupListQuery = Type.Object(
  {
    fingerprint: Type.Optional(FingerprintText),
    topic: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 249,
        description: 'The original topic.',
        examples: ['orders.v1'],
      }),
    ),
    consumer_group: Type.Optional(Type.String({ minLength: 1, maxLength: 255, examples: ['billing'] })),
    status: Type.Optional(Type.Enum([...statuses])),
    error_class: Type.Optional(
      Type.String({ minLength: 1, maxLength: 256, examples: ['java.net.SocketTimeoutException'] }),
    ),
    ...pageParameters,
  },
  closed,
);

const CountsSchema = Type.Object(
  Object.fromEntries(statuses.map((status) => [status, Type.Integer({ minimum: 0 })])),
);

const groupFields = {
  fingerprint: FingerprintText,
  title: Type.String({
    description: 'The error without its variable parts.',
    examples: ['timed out after <duration>'],
  }),
  error_class: nullable(Type.String({ examples: ['java.net.SocketTimeoutException'] })),
  count: Type.Integer({ minimum: 0 }),
  counts: CountsSchema,
  first_at: Timestamp,
  last_at: Timestamp,
  topics: Type.Array(Type.String({ examples: ['orders.v1'] }), {
    description: 'The 20 with the most messages.',
  }),
  consumer_groups: Type.Array(Type.String({ examples: ['billing'] }), {
    description: 'The 20 with the most messages.',
  }),
  trend: Type.Array(Type.Number(), {
    minItems: trendHours,
    maxItems: trendHours,
    examples: [[...Array<number>(trendHours - 2).fill(0), 3, 1]],
    description: 'Failures per hour, oldest first; the last one is the hour under way.',
  }),
  badges: Type.Array(Type.Enum(['new', 'back', 'growing']), {
    description:
      '`new`: first seen within an hour. `back`: open again after a whole hour without an open message. `growing`: at least 10 failures an hour, and twice the mean before.',
  }),
  sample_id: nullable(Type.String({ format: 'uuid', description: 'The newest message.' })),
  frame: nullable(
    Type.String({ examples: ['com.acme.StockClient.reserve'], description: 'The top frame of your code.' }),
  ),
};

export const GroupListSchema: TSchema = Type.Object({
  groups: Type.Array(Type.Object(groupFields, { title: 'Group' })),
  pagination: PaginationSchema,
  as_of: AsOf,
});

export const GroupSchema: TSchema = Type.Object(
  {
    ...groupFields,
    why: Type.Object(
      {
        version: nullable(Type.Integer({ description: 'Of the rules.', examples: [2] })),
        class: nullable(Type.String({ examples: ['java.net.SocketTimeoutException'] })),
        template: nullable(Type.String({ examples: ['timed out after <duration>'] })),
        frame: nullable(Type.String({ examples: ['com.acme.StockClient.reserve'] })),
      },
      {
        description: 'What its messages have in common; all null if the fingerprint was not made by Redrive.',
      },
    ),
    top_keys: Type.Array(
      Type.Object({
        key: nullable(Type.String({ examples: ['order-7'] })),
        key_base64: Type.Optional(Type.String({ description: 'Only if the key is not text.' })),
        count: Type.Integer(),
        unreadable: Type.Optional(
          Type.String({ description: 'Why the key is missing: it cannot be decrypted.' }),
        ),
      }),
      { description: 'The 10 most frequent keys of the newest 10 000 messages.' },
    ),
    by_topic: Type.Array(
      Type.Object({
        topic: Type.String({ examples: ['orders.v1'] }),
        consumer_group: nullable(Type.String({ examples: ['billing'] })),
        counts: CountsSchema,
      }),
      { description: 'At most 1000 pairs of topic and consumer group.' },
    ),
  },
  { title: 'GroupDetails' },
);
