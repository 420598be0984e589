import { Type, type TSchema } from 'typebox';
import { inboxKinds, inboxSlices } from '../../kernel/inbox/inbox-group.ts';
import { AsOf, closed, nullable, Timestamp } from '../../platform/http/schema-parts.ts';
import { ENTRY_ID_PATTERN } from './entry-id.ts';
import { badges, entryStates } from './entry-state.ts';
import { rankCodes } from './rank.ts';

/** An answer has no more entries. */
export const maxEntries = 200;

export const InboxQuery = Type.Object(
  {
    state: Type.Optional(Type.Enum([...entryStates], { default: 'open' })),
    kind: Type.Optional(Type.Enum([...inboxKinds])),
    slice: Type.Optional(Type.Enum([...inboxSlices])),
    assignee: Type.Optional(
      Type.String({
        maxLength: 2000,
        description:
          'Subjects with commas between them; `me` is the caller, `none` an entry without an owner.',
        examples: ['me,none'],
      }),
    ),
    text: Type.Optional(
      Type.String({ minLength: 1, maxLength: 200, description: 'Part of the title, or of where it is.' }),
    ),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: maxEntries, default: maxEntries })),
  },
  closed,
);

export const EntryParams = Type.Object(
  {
    id: Type.String({
      maxLength: 128,
      pattern: ENTRY_ID_PATTERN,
      examples: ['messages.q0m3Xk7J1n8rT2vY5bZc9dF4gH6jKpLs'],
    }),
  },
  closed,
);

const text = (example: string) => Type.Optional(Type.String({ examples: [example] }));

export const entryFields = {
  id: Type.String({ examples: ['messages.q0m3Xk7J1n8rT2vY5bZc9dF4gH6jKpLs'] }),
  kind: Type.Enum([...inboxKinds]),
  slice: Type.Enum([...inboxSlices]),
  state: Type.Enum([...entryStates]),
  title: Type.String({ examples: ['TimeoutException: payment-gateway did not answer within # ms'] }),
  where: Type.Object({
    topic: text('orders.v1'),
    consumer_group: text('billing'),
    fingerprint: text('v1:7f3c0a9b2d4e6f81'),
    destination: text('broker'),
    ordering_key: text('C-17'),
    queue: text('summarize'),
    workflow: text('place-order'),
    step: text('charge'),
    redrive: text('01a1dfae-c3a5-7000-8007-f35eedc32390'),
    service: text('payment'),
    partition: Type.Optional(Type.Integer()),
  }),
  count: Type.Integer({ description: 'Items that need the decision; 0 when they are gone.' }),
  trend: nullable(
    Type.Array(Type.Integer(), {
      description: 'Arrivals in each hour of the last day, oldest first; the last one is the hour under way.',
    }),
  ),
  oldest_at: nullable(Timestamp),
  newest_at: nullable(Timestamp),
  rank: Type.Object({
    code: Type.Enum([...rankCodes]),
    count: Type.Integer(),
    age_seconds: nullable(Type.Integer()),
    growth_factor: nullable(Type.Number({ description: 'How many times the usual number arrived.' })),
    growth_minutes: nullable(Type.Integer()),
  }),
  rank_reason: Type.String({ examples: ['growing 8x in 60 min'] }),
  badges: Type.Array(Type.Enum([...badges])),
  owner: nullable(
    Type.Object({
      subject: Type.String({ examples: ['user:https://idp.example.com/realms/main|7f3c'] }),
      name: Type.String({ examples: ['ada'] }),
    }),
  ),
  snooze: nullable(
    Type.Object({
      count: Type.Integer({ description: 'The entry is open again when it has more items than this.' }),
      by: nullable(Type.String()),
      at: nullable(Timestamp),
    }),
  ),
  done: nullable(
    Type.Object({
      by: nullable(
        Type.String({ description: 'Who decided; null if its items went without anybody on record.' }),
      ),
      at: nullable(Timestamp),
      reason: nullable(Type.String()),
      action: nullable(
        Type.String({
          description: 'The permission of the last act in the audit log; null if it was done by hand.',
          examples: ['dlq:redrives:start'],
        }),
      ),
    }),
  ),
  notes: Type.Integer(),
  verb: Type.Object({
    action: Type.String({ examples: ['plan_redrive'] }),
    permission: Type.String({ examples: ['dlq:redrives:plan'] }),
  }),
  link: Type.String({ examples: ['/dlq/redrives/new?q=fingerprint%3Av1%3A7f3c0a9b2d4e6f81'] }),
};

export const EntrySchema: TSchema = Type.Object(entryFields, { title: 'InboxEntry' });

export const InboxSchema: TSchema = Type.Object(
  {
    entries: Type.Array(EntrySchema),
    more: Type.Integer({ description: 'Entries that match and are not in the answer.' }),
    counts: Type.Object(
      {
        open: Type.Integer(),
        snoozed: Type.Integer(),
        done: Type.Integer(),
        by_slice: Type.Object(Object.fromEntries(inboxSlices.map((slice) => [slice, Type.Integer()])), {
          description: 'Of open entries.',
        }),
      },
      { description: 'Of everything that the caller may see, whatever the filter.' },
    ),
    unavailable: Type.Optional(
      Type.Array(Type.Enum([...inboxSlices]), {
        description: 'What could not be read in time: its entries are missing, and not counted.',
      }),
    ),
    partial: Type.Optional(
      Type.Array(Type.Enum([...inboxSlices]), { description: 'What has more groups than were read.' }),
    ),
    as_of: AsOf,
  },
  { title: 'Inbox' },
);
