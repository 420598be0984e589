import { Type, type TSchema } from 'typebox';
import { PaginationSchema, pageParameters } from '../platform/http/page-schema.ts';
import {
  checkedAs,
  closed,
  Instant,
  nullable,
  Reason,
  Timestamp,
  Uuid,
  Masked,
} from '../platform/http/schema-parts.ts';
import { removableParts } from './domain/dead-letter.ts';
import { exclusionReasons, statuses } from './domain/message.ts';

/** The requests and responses of the routes; the OpenAPI document is generated from these. */

const Offset = Type.Integer({ minimum: 0 });
export const StatusSchema = Type.Enum([...statuses]);

/** Kafka's limit for topic names. */
export const TopicParameter = Type.String({ minLength: 1, maxLength: 249, examples: ['orders.v1'] });

/** Checked by `parseMessageId`: clients rely on the wording of its error. */
export const IdParams = Type.Object({ id: Uuid });
export const TopicParams = Type.Object({ topic: TopicParameter });
export const TopicListQuery = Type.Object({ ...pageParameters }, closed);
export const OptionalReasonBody = Type.Optional(
  nullable(Type.Object({ reason: Type.Optional(Reason) }, closed)),
);
export const ReasonBody = Type.Object({ reason: Reason }, closed);
/** In the query, because proxies may drop the body of a DELETE. */
export const ReasonQuery = Type.Object({ reason: Reason }, closed);
export const RouteBody = Type.Object({ target_topic: TopicParameter, reason: Reason }, closed);
export const NoBody = Type.Optional(nullable(Type.Object({}, closed)));

export const SeekParams = Type.Object({
  topic: TopicParameter,
  partition: Type.Integer({ minimum: 0, maximum: 2_147_483_647 }),
});
export const SeekBody = Type.Object(
  {
    offset: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
    timestamp: Type.Optional({
      ...Instant,
      description: 'ISO 8601 with its zone; seeks to the first record at or after it.',
    }),
    earliest: Type.Optional(Type.Literal(true, { examples: [true] })),
    reason: Reason,
  },
  {
    ...closed,
    ...checkedAs({ oneOf: ['offset', 'timestamp', 'earliest'].map((name) => ({ required: [name] })) }),
  },
);

const messageHead = {
  id: Type.String({ format: 'uuid' }),
  original_topic: Type.String({ examples: ['orders.v1'] }),
  error_message: Type.String({ examples: ['timed out after 3000 ms'] }),
  retry_count: Type.Integer(),
  max_retries: Type.Integer({ examples: [3] }),
};

const messageFacts = {
  status: StatusSchema,
  created_at: Timestamp,
  updated_at: Timestamp,
  last_retry_at: nullable(Timestamp),
  source_topic: nullable(
    Type.String({ examples: ['orders.dlq.v1'], description: 'The dead-letter topic it was read from.' }),
  ),
  source_partition: nullable(Type.Integer({ examples: [0] })),
  source_offset: nullable(Offset),
  key: nullable(Type.String({ examples: ['order-7'] })),
  key_base64: Type.Optional(
    Type.String({ examples: ['b3JkZXItNw=='], description: 'Only if the key is not text.' }),
  ),
  error_class: nullable(Type.String({ examples: ['java.net.SocketTimeoutException'] })),
  consumer_group: nullable(Type.String({ examples: ['billing'] })),
  original_partition: nullable(Type.Integer()),
  original_offset: nullable(Offset),
  original_timestamp: nullable(Timestamp),
  dialect: nullable(
    Type.String({
      examples: ['spring-kafka'],
      description: 'The producer framework whose headers describe the failure.',
    }),
  ),
  fingerprint: nullable(Type.String()),
  unroutable: Type.Boolean({ description: 'Its original topic is unknown.' }),
  attempt_no: Type.Integer({ description: 'Counts every attempt; never reset.' }),
  parent_id: nullable(Type.String({ description: 'The message whose Redrive headers it has.' })),
  resolution: nullable(Type.Enum(['published', 'not_published'])),
  archived: Type.Boolean(),
  routed: Type.Boolean({ description: 'An operator chose its topic with `…/route`.' }),
  next_attempt_at: nullable({ ...Timestamp, description: 'When its retry policy retries it.' }),
  retry_policy: nullable(Type.String({ examples: ['timeouts'] })),
  version: Type.Integer({ minimum: 0, description: 'How often it was edited; 0 is the original.' }),
  key_omitted: Type.Optional(Type.Literal(true, { description: 'Only in lists: longer than 1 KiB.' })),
  encrypted: Type.Optional(Type.Literal(true, { description: 'Its record is stored encrypted.' })),
  unreadable: Type.Optional(
    Type.Enum(['SYS_DLQ_KEY_UNAVAILABLE', 'SYS_DLQ_CANNOT_DECRYPT'], {
      description: 'Why key, payload and stack are missing: they cannot be decrypted.',
    }),
  ),
  removed_parts: Type.Optional(
    Type.Array(Type.Enum([...removableParts]), {
      description:
        'Parts from which a rule with `drop_at_ingest` removed content before the message was stored. While key, value or headers are among them, the message cannot be retried: an edit has to give them again.',
    }),
  ),
  masked: Masked,
};

/** The present functions make the responses; their schemas only describe them. */
export const MessageSchema: TSchema = Type.Object(
  {
    ...messageHead,
    payload: Type.Unknown({
      examples: [{ order_id: 7 }],
      description: 'The value as JSON; null if it is not JSON. `…/raw` has the bytes.',
    }),
    ...messageFacts,
    payload_omitted: Type.Optional(
      Type.Literal(true, {
        description: 'Too large to show: more than 64 KiB in lists, else more than 16 MiB.',
      }),
    ),
    error_stack: Type.Optional(nullable(Type.String({ description: 'Only for a single message.' }))),
  },
  { title: 'Message' },
);

/** As lists with filters show it: with the beginning of the value in place of the payload. */
export const ListedMessageSchema: TSchema = Type.Object(
  {
    ...messageHead,
    ...messageFacts,
    payload_preview: nullable(
      Type.String({
        examples: ['{"order_id":7}'],
        description: 'The first 200 characters of the value in one line; null if it is not text.',
      }),
    ),
    payload_bytes: nullable(Type.Integer({ minimum: 0, description: 'Of the value; null without a value.' })),
  },
  { title: 'ListedMessage' },
);

export const MessageListSchema: TSchema = Type.Object({
  messages: Type.Array(MessageSchema),
  pagination: PaginationSchema,
});

export const RetrySchema: TSchema = Type.Object({
  id: Type.String({ format: 'uuid' }),
  status: StatusSchema,
  message: Type.String({ examples: ['message retry initiated'] }),
  published: Type.Boolean({ description: 'False if no broker is configured: nothing was sent.' }),
});

export const RetryAllSchema: TSchema = Type.Object({
  retried: Type.Integer(),
  message: Type.String({ examples: ['message retry initiated'] }),
  failed: Type.Integer({ description: 'Refused by the broker, or in doubt; each used an attempt.' }),
  skipped: Type.Integer({
    description: 'Not retried: locked, or behind a refused message with the same key.',
  }),
  excluded: Type.Integer({
    description: 'Not retried: they cannot be published now, or a redrive has them that has not ended.',
  }),
  remaining: Type.Integer({ description: 'Not retried because the call ended early.' }),
  exclusions: Type.Array(
    Type.Object({
      reason: Type.Enum([...exclusionReasons]),
      topic: Type.String({ examples: ['orders.dlq.v1'] }),
      count: Type.Integer(),
    }),
  ),
});

export const DeleteSchema: TSchema = Type.Object({
  success: Type.Literal(true),
  message: Type.String({ examples: ['message retry initiated'] }),
});

export const HistorySchema: TSchema = Type.Object({
  history: Type.Array(
    Type.Object({
      at: Timestamp,
      event: Type.String({ examples: ['retried'] }),
      actor: Type.String({ examples: ['alice@example.com'] }),
      reason: nullable(Type.String()),
      status_from: nullable(StatusSchema),
      status_to: nullable(StatusSchema),
      retry_count: Type.Integer(),
      attempt_no: Type.Integer(),
      topic: nullable(Type.String({ examples: ['orders.dlq.v1'] })),
      partition: nullable(Type.Integer()),
      offset: nullable(Offset),
      detail: nullable(Type.String()),
      redrive_id: nullable(
        Type.String({ format: 'uuid', description: 'The redrive that retried, reopened or ended it.' }),
      ),
      version: nullable(
        Type.Integer({ description: 'That an attempt published or an edit made; null: the original.' }),
      ),
    }),
  ),
  truncated: Type.Optional(
    Type.Literal(true, { description: 'Only if there are more than the 10 000 entries listed.' }),
  ),
});

export const SourcesSchema: TSchema = Type.Object({
  sources: Type.Array(
    Type.Object({
      topic: Type.String({ examples: ['orders.dlq.v1'] }),
      partition: Type.Integer(),
      topic_id: Type.String({ examples: ['b8tRS7h4TJ2Vt43Dp85v2A'] }),
      cluster_id: Type.String({ examples: ['4L6g3nShT-eMCtK--X86sw'] }),
      position: Offset,
      end: nullable(Type.Integer({ minimum: 0, description: 'The high watermark.' })),
      lag: nullable(Type.Integer({ description: 'Offsets up to the end that are not read yet.' })),
      owner: nullable(Type.String()),
      state: Type.Enum(['reading', 'waiting', 'stopped', 'gone']),
      last_error: nullable(Type.String()),
      last_error_at: nullable(Timestamp),
      stored_at: nullable(Timestamp),
      gaps: Type.Integer({
        description:
          'Records that retention deleted before they were read. `accounting` calls them `lost`; its `gaps` are those of compaction.',
      }),
      first_offset: Offset,
      high_offset: Offset,
      last_seek: Type.Unknown(),
      stable_end: nullable(
        Type.Integer({
          minimum: 0,
          description: 'The last stable offset: reading stops here while a transaction is open.',
        }),
      ),
      held_back_since: nullable(
        Type.String({
          format: 'date-time',
          description: 'Since when an open transaction has blocked reading.',
        }),
      ),
    }),
  ),
});

export const AccountingSchema: TSchema = Type.Object({
  balanced: Type.Boolean({ description: 'Every offset that was read is accounted for.' }),
  partitions: Type.Array(
    Type.Object({
      topic: Type.String({ examples: ['orders.dlq.v1'] }),
      partition: Type.Integer(),
      topic_id: Type.String({ examples: ['b8tRS7h4TJ2Vt43Dp85v2A'] }),
      first_offset: Offset,
      high_offset: Offset,
      passed: Type.Integer(),
      stored: Type.Integer(),
      reopened: Type.Integer(),
      folded: Type.Integer(),
      not_records: Type.Integer({
        description:
          'The sum of control, aborted and gaps, and of offsets counted before these were counted separately.',
      }),
      lost: Type.Integer(),
      reread: Type.Integer(),
      balanced: Type.Boolean(),
      broker_end: nullable(Offset),
      lag: nullable(Type.Integer()),
      control: Type.Integer({ description: 'Transaction markers.' }),
      aborted: Type.Integer({ description: 'Records of aborted transactions.' }),
      gaps: Type.Integer({
        description:
          'Offsets without a record because of compaction. The `gaps` of `sources` are `lost` here.',
      }),
    }),
  ),
});

const VerifiedOffset = Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }));
export const VerifyQuery = Type.Object({ from: VerifiedOffset, to: VerifiedOffset }, closed);

const OffendersSchema = (description: string): TSchema =>
  Type.Object(
    { count: Type.Integer(), offsets: Type.Array(Offset, { description: 'At most 100.' }) },
    { description },
  );

export const VerificationSchema: TSchema = Type.Object({
  topic: Type.String({ examples: ['orders.dlq.v1'] }),
  partition: Type.Integer(),
  topic_id: Type.String({ examples: ['b8tRS7h4TJ2Vt43Dp85v2A'] }),
  ok: Type.Boolean({ description: 'Nothing is missing, different or unexpected.' }),
  from: Offset,
  to: Offset,
  next: nullable(
    Type.Integer({ minimum: 0, description: 'Continue from here; null at the end of the range.' }),
  ),
  broker: Type.Object({
    records: Type.Integer(),
    control: Type.Integer(),
    aborted: Type.Integer(),
    gaps: Type.Integer(),
  }),
  stored: Type.Object({
    messages: Type.Integer(),
    archived: Type.Integer(),
    came_back: Type.Integer(),
    deleted: Type.Integer(),
  }),
  missing: OffendersSchema('Records on the broker that are not stored.'),
  different: OffendersSchema('Messages whose bytes differ from the record.'),
  unexpected: OffendersSchema('Messages where the broker has a transaction marker or an aborted record.'),
});

export const SeekSchema: TSchema = Type.Object({
  topic: Type.String({ examples: ['orders.dlq.v1'] }),
  partition: Type.Integer(),
  from: Offset,
  to: Offset,
  message: Type.String({ examples: ['message retry initiated'] }),
});
