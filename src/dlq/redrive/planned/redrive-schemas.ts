import { Type, type TSchema } from 'typebox';
import { linesParameters, PaginationSchema, pageParameters } from '../../../platform/http/page-schema.ts';
import { closed, Instant, nullable, Reason, Timestamp, Uuid } from '../../../platform/http/schema-parts.ts';
import { itemOutcomes } from '../../domain/redrive-item.ts';
import { statuses } from '../../domain/message.ts';
import { redriveKinds } from '../../domain/redrive-kind.ts';
import { redriveStates } from '../../domain/redrive.ts';
import { CanarySchema, NewCanarySchema } from '../canary/canary-schema.ts';
import { exclusionReasons } from './plan-targets.ts';

/** The requests and responses of the redrive routes; the OpenAPI document is generated from these. */

const Count = Type.Integer({ minimum: 0 });
const TopicName = Type.String({ minLength: 1, maxLength: 249, examples: ['orders.v1'] });
const rates = { minimum: 0.1, maximum: 100_000, examples: [200] };
const itemStates = ['waiting', 'in_flight', ...itemOutcomes] as const;

const maxFilterIds = 10_000;

export const FilterSchema = Type.Object(
  {
    topic: Type.Optional({
      ...TopicName,
      description: 'Original or dead-letter topic. With `*` or `?` a pattern: `orders.*`.',
    }),
    status: Type.Optional(
      Type.Array(Type.Enum([...statuses]), {
        minItems: 1,
        maxItems: statuses.length,
        description:
          'Default: all but RESOLVED; for the kind `dead` PENDING and RETRYING; with `ids` all. Messages whose status does not allow it are counted as excluded.',
      }),
    ),
    fingerprint: Type.Optional(Type.String({ minLength: 1, maxLength: 200, examples: ['v1:5f0c2c1e'] })),
    error_class: Type.Optional(
      Type.String({ minLength: 1, maxLength: 1000, examples: ['java.net.SocketTimeoutException'] }),
    ),
    key: Type.Optional(
      Type.String({ maxLength: 10_000, examples: ['order-7'], description: 'The whole key, as UTF-8.' }),
    ),
    consumer_group: Type.Optional(Type.String({ minLength: 1, maxLength: 255, examples: ['billing'] })),
    text: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 256,
        examples: ['timed out'],
        description: 'All words, in any order and case, in the error or the first 8 kB of the value.',
      }),
    ),
    since: Type.Optional({ ...Instant, description: 'Stored at or after it; ISO 8601 with its zone.' }),
    until: Type.Optional({ ...Instant, description: 'Stored before it; ISO 8601 with its zone.' }),
    ids: Type.Optional(Type.Array(Uuid, { minItems: 1, maxItems: maxFilterIds })),
  },
  closed,
);

export const NewRedriveBody = Type.Object(
  {
    kind: Type.Optional(
      Type.Enum([...redriveKinds], {
        default: 'retry',
        description:
          '`retry` publishes the messages. The others are bulk decisions: they take no `order`, `reopen` and `canary`.',
      }),
    ),
    filter: FilterSchema,
    reason: Reason,
    rate_per_second: Type.Optional(
      nullable(Type.Number({ ...rates, description: 'Messages per second; null: no limit.' })),
    ),
    order: Type.Optional(
      Type.Enum(['key', 'none'], {
        default: 'key',
        description: '`key`: behind a message that was not published, the rest of its key is skipped.',
      }),
    ),
    reopen: Type.Optional(
      Type.Boolean({
        default: false,
        description: 'Takes DEAD messages and those without an attempt left too, with a new retry budget.',
      }),
    ),
    canary: Type.Optional(nullable(NewCanarySchema)),
  },
  closed,
);

const { rate_per_second, canary } = NewRedriveBody.properties;

export const RedrivePatchBody = Type.Object(
  { rate_per_second, canary, reason: Type.Optional(Reason) },
  { ...closed, examples: [{ rate_per_second: 50, reason: 'the consumer keeps up' }] },
);

export const RedriveParams = Type.Object({ id: Uuid });
export const RedriveListQuery = Type.Object(
  {
    policy: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 100,
        examples: ['timeouts'],
        description: 'Only redrives that this retry policy has made.',
      }),
    ),
    state: Type.Optional(
      Type.Array(Type.Enum([...redriveStates]), {
        minItems: 1,
        maxItems: redriveStates.length,
        description: 'May be repeated: one of these.',
      }),
    ),
    automatic: Type.Optional(
      Type.Boolean({ description: 'true: only those made by policies; false: only those made by people.' }),
    ),
    ...pageParameters,
  },
  closed,
);
export const ItemListQuery = Type.Object(
  { outcome: Type.Optional(Type.Enum([...itemStates])), ...pageParameters, ...linesParameters },
  closed,
);
export const ApproveBody = Type.Object({ reason: Reason }, closed);
export const CommandBody = Type.Optional(nullable(Type.Object({ reason: Type.Optional(Reason) }, closed)));

const StateSchema = Type.Enum([...redriveStates]);

export const CreatedSchema: TSchema = Type.Object({
  id: Type.String({ format: 'uuid' }),
  state: StateSchema,
});

const ReceiptSchema = nullable(
  Type.Object(
    {
      sha256: Type.String({
        description:
          'Of the lines `position,message_id,attempt,outcome,topic,partition,offset`, in order, each ended by a line feed.',
      }),
      counts: Type.Object(Object.fromEntries(['selected', ...itemOutcomes].map((name) => [name, Count]))),
    },
    { description: 'Set when the redrive has ended; it never changes.' },
  ),
);

const about = {
  id: Type.String({ format: 'uuid' }),
  kind: Type.Enum([...redriveKinds]),
  state: StateSchema,
  state_reason: nullable(Type.String({ examples: ['pause by alice@example.com'] })),
  filter: Type.Object({}, { additionalProperties: true, examples: [{ topic: 'orders.v1' }] }),
  reason: Type.String({ examples: ['the consumer was fixed'] }),
  actor: Type.String({ examples: ['alice@example.com'] }),
  started_by: nullable(
    Type.String({
      examples: ['alice@example.com'],
      description: 'Who started or resumed it last. When they lose the right to do so, it is paused.',
    }),
  ),
  approval: nullable(
    Type.Object(
      { actor: Type.String({ examples: ['bob@example.com'] }), at: Timestamp, reason: Type.String() },
      { description: 'By a second person. A later change of the options voids it.' },
    ),
  ),
  policy: nullable(Type.String({ description: 'The retry policy that made it.' })),
  frozen_at: nullable(Timestamp),
  options: Type.Object({
    rate_per_second: nullable(Type.Number(rates)),
    order: Type.Enum(['key', 'none']),
    reopen: Type.Optional(Type.Boolean()),
    canary: Type.Optional(nullable(CanarySchema)),
  }),
  stage: nullable(
    Type.Integer({
      minimum: 1,
      description: 'The stage of the canary, from 1; one more than there are stages while the rest is sent.',
    }),
  ),
  watch_until: nullable({
    ...Timestamp,
    description: 'The end of the window in which the stage is watched.',
  }),
  waiting_for: nullable(
    Type.String({
      description: 'What has to happen before it continues.',
      examples: ['consumer group billing is at offset 3 of orders.v1/0, not beyond 7'],
    }),
  ),
  owner: nullable(
    Type.String({ description: 'The process that plans or runs it; after its end another one takes over.' }),
  ),
};

const times = {
  created_at: Timestamp,
  started_at: nullable(Timestamp),
  finished_at: nullable(Timestamp),
  receipt: ReceiptSchema,
};

export const RedriveSchema: TSchema = Type.Object(
  {
    ...about,
    counts: Type.Object(
      Object.fromEntries(
        ['selected', 'excluded', 'waiting', 'in_flight', 'quiet', ...itemOutcomes].map((name) => [
          name,
          Count,
        ]),
      ),
      {
        description:
          '`selected` is the sum of the others but `excluded`. `quiet`: published, and the window of its stage has closed.',
      },
    ),
    came_back_after: {
      ...Count,
      description: 'Messages that came back after the end; the receipt does not change.',
    },
    excluded: Type.Array(
      Type.Object({
        reason: Type.Enum([...exclusionReasons]),
        count: Count,
        sample_ids: Type.Array(Type.String({ format: 'uuid' }), { description: 'At most 100.' }),
      }),
    ),
    overlaps: Type.Array(Type.Object({ redrive_id: Type.String({ format: 'uuid' }), count: Count }), {
      description:
        'Redrives that were running, paused or stopped at the time of the plan and have messages of the filter; those messages are excluded. The 100 largest.',
    }),
    targets: Type.Array(
      Type.Object({
        topic: TopicName,
        count: Count,
        groups: Type.Array(Type.String({ examples: ['billing'] }), {
          description:
            'Consumer groups that read the topic: those that failed on these messages, and those that have committed an offset. At most 100.',
        }),
        failed_groups: Type.Optional(
          Type.Array(Type.String({ examples: ['billing'] }), {
            description: 'Those of them that failed on these messages. Missing in plans of older versions.',
          }),
        ),
      }),
      { description: 'The 100 largest.' },
    ),
    groups_error: nullable(
      Type.String({
        description:
          'Why the broker could not be asked for consumer groups; then `groups` has only those that failed.',
      }),
    ),
    fingerprints: Type.Array(
      Type.Object({ fingerprint: nullable(Type.String({ examples: ['v2:5f0c2c1e'] })), count: Count }),
      { description: 'The 100 largest.' },
    ),
    keys: nullable(
      Type.Object(
        {
          distinct: Count,
          longest: { ...Count, description: 'Messages of the most frequent key.' },
          without_key: Count,
        },
        { description: 'Keys whose order is kept; null before the plan.' },
      ),
    ),
    sample_ids: Type.Array(Type.String({ format: 'uuid' }), {
      description: 'Up to 20 selected messages, of different targets and fingerprints.',
    }),
    rate_now: nullable(Type.Number({ description: 'Messages per second, over the last 10 s.' })),
    eta_seconds: nullable(
      Type.Integer({
        description:
          'For the waiting messages: at the rate of the last 10 s, else at the limit, else at 2000 per second. Null when it is paused, has stopped or has ended.',
      }),
    ),
    ...times,
  },
  { title: 'Redrive' },
);

export const EventsResponse: Readonly<Record<string, unknown>> = {
  description: 'Server-sent events.',
  content: {
    'text/event-stream': {
      schema: Type.String({
        examples: [
          'event: progress\ndata: {"id": "0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31", "state": "running"}\n\n',
        ],
      }),
    },
  },
};

export const RedriveListSchema: TSchema = Type.Object({
  redrives: Type.Array(Type.Object({ ...about, selected: Count, ...times })),
  pagination: PaginationSchema,
});

export const ItemListSchema: TSchema = Type.Object({
  items: Type.Array(
    Type.Object({
      position: Type.Integer({ minimum: 1 }),
      message_id: Type.String({ format: 'uuid' }),
      target: TopicName,
      outcome: Type.Enum([...itemStates]),
      attempt: nullable(Type.Integer()),
      partition: nullable(Type.Integer()),
      offset: nullable(Type.Integer({ minimum: 0 })),
      reason: nullable(Type.String({ examples: ['changed since the plan'] })),
      settled_at: nullable(Timestamp),
    }),
  ),
  pagination: PaginationSchema,
});
