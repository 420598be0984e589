import { Type, type TObject, type TSchema } from 'typebox';
import { PaginationSchema, pageParameters } from '../../platform/http/page-schema.ts';
import { countedTotal, facetsOf } from '../../platform/http/facet-schemas.ts';
import { AsOf, closed, Instant, Timestamp } from '../../platform/http/schema-parts.ts';
import { statuses } from '../domain/message.ts';
import { ListedMessageSchema, StatusSchema, TopicParameter } from '../schemas.ts';
import { facetFields } from './count-facets.ts';

/** Which messages are meant, as query parameters. */

const TopicPattern = {
  ...TopicParameter,
  description: 'Original or dead-letter topic. With `*` or `?` a pattern: `orders.*`.',
};
const Fingerprint = Type.String({
  minLength: 1,
  maxLength: 255,
  examples: ['v2:3b0e6c1f9a7d42588c1e0f6a5d9b7c34'],
});
const ErrorClass = Type.String({
  minLength: 1,
  maxLength: 256,
  examples: ['java.net.SocketTimeoutException'],
});
const Key = Type.String({ maxLength: 1024, examples: ['order-7'], description: 'The whole key, as UTF-8.' });
const ConsumerGroup = Type.String({ minLength: 1, maxLength: 255, examples: ['billing'] });
const Text = Type.String({
  minLength: 1,
  maxLength: 256,
  examples: ['timed out'],
  description:
    'All words, in any order and case, in the error or the first 8 kB of the value. Chinese, Japanese and Korean are matched by pairs of characters.',
});

const maxExcluded = 10;
const excluded = <Schema extends TSchema>(schema: Schema, what: string) =>
  Type.Optional(
    Type.Array(schema, { minItems: 1, maxItems: maxExcluded, description: `Not ${what}. May be repeated.` }),
  );

const filterParameters = {
  topic: Type.Optional(TopicPattern),
  status: Type.Optional(
    Type.Array(StatusSchema, {
      minItems: 1,
      maxItems: statuses.length,
      description: 'May be repeated: one of these.',
    }),
  ),
  fingerprint: Type.Optional(Fingerprint),
  error_class: Type.Optional(ErrorClass),
  key: Type.Optional(Key),
  consumer_group: Type.Optional(ConsumerGroup),
  since: Type.Optional({ ...Instant, description: 'Stored at or after it; ISO 8601 with its zone.' }),
  until: Type.Optional({ ...Instant, description: 'Stored before it; ISO 8601 with its zone.' }),
  unroutable: Type.Optional(Type.Boolean({ description: 'Whether its original topic is unknown.' })),
  has_edit: Type.Optional(Type.Boolean({ description: 'Whether an operator has edited it.' })),
  archived: Type.Optional(
    Type.Boolean({ description: 'True: archived messages in place of the live ones.' }),
  ),
  text: Type.Optional(Text),
  not_topic: excluded(TopicPattern, 'from this topic or pattern'),
  not_status: excluded(StatusSchema, 'in this status'),
  not_fingerprint: excluded(Fingerprint, 'with this fingerprint'),
  not_error_class: excluded(ErrorClass, 'with this error class'),
  not_key: excluded(Key, 'with this key'),
  not_consumer_group: excluded(ConsumerGroup, 'of this consumer group'),
  not_text: excluded(Text, 'with all these words'),
};

export const MessageFilterQuery = Type.Object(filterParameters, closed);
/** So that a misspelt field is refused. */
const fieldNames = Object.keys((ListedMessageSchema as TObject).properties);

const fieldsParameter = {
  fields: Type.Optional(
    Type.Array(Type.Enum(fieldNames), {
      minItems: 1,
      maxItems: fieldNames.length,
      description: 'Only these fields of each message, and `id`. May be repeated.',
    }),
  ),
};

export const MessageListQuery = Type.Object(
  { ...filterParameters, ...fieldsParameter, ...pageParameters },
  closed,
);

const searched = {
  as_of: AsOf,
  encrypted_not_searched: Type.Optional(
    Type.Literal(true, {
      description:
        'Only with `text` or `not_text`: there may be encrypted messages, of which only the error is searched.',
    }),
  ),
  indexed_until: Type.Optional({
    ...Timestamp,
    description:
      'Only with `text`, `key`, `error_class` or `consumer_group`: messages stored since may be missing, because they are not indexed yet.',
  }),
  scanned_until: Type.Optional({
    ...Timestamp,
    description:
      'Only if the search ended after 2 s: older messages were not checked. `next_cursor` continues there.',
  }),
};

export const MessageListSchema: TSchema = Type.Object({
  messages: Type.Array(ListedMessageSchema),
  pagination: PaginationSchema,
  ...searched,
});

export const FacetsSchema: TSchema = Type.Object(
  {
    ...countedTotal,
    facets: facetsOf(facetFields, 'PENDING'),
    ...searched,
  },
  { title: 'MessageFacets' },
);
