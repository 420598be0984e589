import { Type, type TSchema } from 'typebox';
import { PaginationSchema, pageParameters } from '../../platform/http/page-schema.ts';
import { statuses } from '../domain/message.ts';

/** What the routes take and answer; the API's description is made from these. */

const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);
const Timestamp = Type.String({ format: 'date-time', examples: ['2026-02-20T10:30:00.000+00:00'] });
const Offset = Type.Integer({ minimum: 0 });
const StatusSchema = Type.Enum([...statuses]);

/** A misspelt parameter is told, not ignored. */
const closed = { additionalProperties: false } as const;

/** Kafka's own limit for a topic's name. */
const TopicParameter = Type.String({ minLength: 1, maxLength: 249 });

/** Checked by hand, so that a wrong id is refused in the words that clients know. */
export const IdParams = Type.Object({ id: Type.String({ maxLength: 1000, description: 'A UUID.' }) });
export const TopicParams = Type.Object({ topic: TopicParameter });
export const TopicListQuery = Type.Object({ ...pageParameters }, closed);
export const MessageListQuery = Type.Object(
  {
    topic: Type.Optional(TopicParameter),
    status: Type.Optional(StatusSchema),
    ...pageParameters,
  },
  closed,
);

const Reason = Type.String({ minLength: 1, maxLength: 1000, pattern: '\\S' });
export const OptionalReasonBody = Type.Optional(
  nullable(Type.Object({ reason: Type.Optional(Reason) }, closed)),
);
export const ReasonBody = Type.Object({ reason: Reason }, closed);
export const NoBody = Type.Optional(nullable(Type.Object({}, closed)));

export const SeekParams = Type.Object({
  topic: TopicParameter,
  partition: Type.Integer({ minimum: 0, maximum: 2_147_483_647 }),
});
export const SeekBody = Type.Object(
  {
    offset: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
    timestamp: Type.Optional(
      Type.String({ maxLength: 64, description: 'ISO 8601: the first record at or after it.' }),
    ),
    earliest: Type.Optional(Type.Literal(true)),
    reason: Reason,
  },
  closed,
);

/** Answers are typed by what presents them; their schemas only describe them. */
export const MessageSchema: TSchema = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    original_topic: Type.String(),
    error_message: Type.String(),
    retry_count: Type.Integer(),
    max_retries: Type.Integer(),
    payload: Type.Unknown({ description: 'The value as JSON; null when it is none. `…/raw` has the bytes.' }),
    status: StatusSchema,
    created_at: Timestamp,
    updated_at: Timestamp,
    last_retry_at: nullable(Timestamp),
    source_topic: nullable(Type.String({ description: 'The dead-letter topic it was read from.' })),
    source_partition: nullable(Type.Integer()),
    source_offset: nullable(Offset),
    key: nullable(Type.String()),
    key_base64: Type.Optional(Type.String({ description: 'Only where the key is no text.' })),
    error_class: nullable(Type.String()),
    consumer_group: nullable(Type.String()),
    original_partition: nullable(Type.Integer()),
    original_offset: nullable(Offset),
    original_timestamp: nullable(Timestamp),
    dialect: nullable(Type.String({ description: 'Whose headers told of the failure.' })),
    fingerprint: nullable(Type.String()),
    unroutable: Type.Boolean({ description: 'It is not known where it belongs.' }),
    attempt_no: Type.Integer({ description: 'Every attempt ever made; never reset.' }),
    parent_id: nullable(Type.String({ description: 'The message whose headers it carries.' })),
    resolution: nullable(Type.Enum(['published', 'not_published'])),
    archived: Type.Boolean(),
    payload_omitted: Type.Optional(Type.Literal(true, { description: 'Only in lists: too large to show.' })),
    error_stack: Type.Optional(nullable(Type.String({ description: 'Only for a single message.' }))),
  },
  { title: 'Message' },
);

export const MessageListSchema: TSchema = Type.Object({
  messages: Type.Array(MessageSchema),
  pagination: PaginationSchema,
});

export const RetrySchema: TSchema = Type.Object({
  id: Type.String({ format: 'uuid' }),
  status: StatusSchema,
  message: Type.String(),
  published: Type.Boolean({ description: 'False where no broker is configured: nothing was sent.' }),
});

export const RetryAllSchema: TSchema = Type.Object({
  retried: Type.Integer(),
  message: Type.String(),
  failed: Type.Optional(Type.Integer({ description: 'Only where some failed.' })),
  unroutable: Type.Optional(
    Type.Integer({ description: 'Only where some were skipped for want of a topic.' }),
  ),
  skipped: Type.Optional(
    Type.Integer({ description: 'Only where some were given back unsent; retry again.' }),
  ),
});

export const DeleteSchema: TSchema = Type.Object({ success: Type.Literal(true), message: Type.String() });

const HeaderSchema = Type.Object({
  key: nullable(Type.String()),
  key_base64: Type.Optional(Type.String()),
  value: nullable(Type.String()),
  value_base64: Type.Optional(Type.String()),
});

export const RawSchema: TSchema = Type.Object({
  id: Type.String({ format: 'uuid' }),
  key_base64: nullable(Type.String()),
  value_base64: nullable(Type.String()),
  key_text: Type.Optional(Type.String()),
  value_text: Type.Optional(Type.String()),
  headers: Type.Array(HeaderSchema),
});

export const HistorySchema: TSchema = Type.Object({
  history: Type.Array(
    Type.Object({
      at: Timestamp,
      event: Type.String(),
      actor: Type.String(),
      reason: nullable(Type.String()),
      status_from: nullable(StatusSchema),
      status_to: nullable(StatusSchema),
      retry_count: Type.Integer(),
      attempt_no: Type.Integer(),
      topic: nullable(Type.String()),
      partition: nullable(Type.Integer()),
      offset: nullable(Offset),
      detail: nullable(Type.String()),
    }),
  ),
});

export const TopicsSchema: TSchema = Type.Object({
  topics: Type.Array(
    Type.Object({
      topic: Type.String(),
      total: Type.Integer(),
      counts: Type.Object(Object.fromEntries(statuses.map((status) => [status, Type.Integer()]))),
      oldest_pending_at: nullable(Timestamp),
      arrived_per_minute: Type.Number(),
    }),
  ),
});

export const SourcesSchema: TSchema = Type.Object({
  sources: Type.Array(
    Type.Object({
      topic: Type.String(),
      partition: Type.Integer(),
      topic_id: Type.String(),
      cluster_id: Type.String(),
      position: Offset,
      end: nullable(Offset),
      lag: nullable(Type.Integer()),
      owner: nullable(Type.String()),
      state: Type.Enum(['reading', 'waiting', 'stopped', 'gone']),
      last_error: nullable(Type.String()),
      last_error_at: nullable(Timestamp),
      stored_at: nullable(Timestamp),
      gaps: Type.Integer({ description: 'Records that retention removed before they were read.' }),
      first_offset: Offset,
      high_offset: Offset,
      last_seek: Type.Unknown(),
    }),
  ),
});

export const AccountingSchema: TSchema = Type.Object({
  balanced: Type.Boolean({ description: 'Every offset that was passed is explained.' }),
  partitions: Type.Array(
    Type.Object({
      topic: Type.String(),
      partition: Type.Integer(),
      topic_id: Type.String(),
      first_offset: Offset,
      high_offset: Offset,
      passed: Type.Integer(),
      stored: Type.Integer(),
      reopened: Type.Integer(),
      folded: Type.Integer(),
      not_records: Type.Integer(),
      lost: Type.Integer(),
      reread: Type.Integer(),
      balanced: Type.Boolean(),
      broker_end: nullable(Offset),
      lag: nullable(Type.Integer()),
    }),
  ),
});

export const SeekSchema: TSchema = Type.Object({
  topic: Type.String(),
  partition: Type.Integer(),
  from: Offset,
  to: Offset,
  message: Type.String(),
});
