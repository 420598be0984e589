import { ageColumn, lastColumn, numberColumn, optional, textColumn } from '../output/columns.ts';
import { instantFact, showFacts, showJson, showText, type Fact } from '../output/facts.ts';
import type { Column } from '../output/render-table.ts';
import { apiCommand, rowsAs } from '../slice/api-command.ts';
import { noteMasks } from '../slice/note-masks.ts';
import { listCommand } from '../slice/list-command.ts';
import { messageFilters, searchNote } from './message-filters.ts';
import { messageId, statusColumn, statuses, toneOf, topicText, type Message } from './message.ts';

type Topic = Readonly<{
  topic: string;
  total: number;
  counts: Readonly<Record<string, number>>;
  oldest_pending_at: string | null;
  arrived_per_minute: number;
}>;

type HistoryEntry = Readonly<{
  at: string;
  event: string;
  actor: string;
  reason: string | null;
  status_from: string | null;
  status_to: string | null;
  retry_count: number;
  attempt_no: number;
  topic: string | null;
  partition: number | null;
  offset: number | null;
  detail: string | null;
}>;

export const topics = apiCommand({
  name: 'topics',
  description: 'list topics with their messages by status',
  route: 'GET /api/v1/dlq',
  examples: ['redrive dlq topics'],
  print: rowsAs<Topic>(
    'topics',
    [
      textColumn('TOPIC', ({ topic }) => topic, 12),
      ...statuses.map((status) => numberColumn<Topic>(status, ({ counts }) => counts[status] ?? 0)),
      numberColumn('TOTAL', ({ total }) => total),
      ageColumn('OLDEST PENDING', ({ oldest_pending_at }) => oldest_pending_at),
      optional(numberColumn('PER MINUTE', ({ arrived_per_minute }) => arrived_per_minute)),
    ],
    'no topics with messages',
  ),
});

export const list = listCommand<Message>({
  name: 'list',
  description: 'list messages, newest first',
  route: 'GET /api/v1/dlq/messages',
  items: 'messages',
  inputs: [
    {
      flags: '[topic]',
      text: "only messages of this topic, by its original or dead-letter name; 'orders.*' is a pattern",
    },
    ...messageFilters,
  ],
  examples: [
    'redrive dlq list',
    'redrive dlq list orders.v1 --status DEAD',
    "redrive dlq list 'orders.*' --text 'timed out' --not-status RESOLVED",
    'redrive dlq list --class java.net.SocketTimeoutException --group billing --since 2026-02-20T00:00:00Z',
    'redrive dlq list --all --json | jq -r .messages[].id',
  ],
  unused: ['payload_preview'],
  columns: [
    textColumn('ID', (message) => message.id),
    statusColumn,
    optional(textColumn('RETRIES', ({ retry_count, max_retries }) => `${retry_count}/${max_retries}`)),
    ageColumn('AGE', ({ created_at }) => created_at),
    textColumn('TOPIC', topicText, 9),
    lastColumn('ERROR', ({ error_message }) => error_message),
  ],
  printAbove: searchNote,
});

export const show = apiCommand<Message>({
  name: 'show',
  description: 'show a message with its error and payload',
  route: 'GET /api/v1/dlq/messages/{id}',
  inputs: [messageId],
  examples: ['redrive dlq show 0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31'],
  print(message, { print, now }) {
    showFacts(print, factsOf(message, now));
    showText(print, 'error', message.error_message);
    if (message.error_stack) showText(print, 'stack', message.error_stack);
    if (message.payload === null) showText(print, 'payload', 'not JSON; `redrive dlq raw` prints the bytes');
    else showJson(print, 'payload', message.payload);
    noteMasks(print, message, `redrive dlq reveal ${message.id}`);
  },
});

function factsOf(message: Message, now: Date): readonly Fact[] {
  return [
    ['id', message.id],
    ['status', `${message.status}${message.archived ? ' (archived)' : ''}`, toneOf(message)],
    ['retries', `${message.retry_count} of ${message.max_retries}, attempt ${message.attempt_no}`],
    ['version', message.version === 0 ? null : `${message.version}, edited; \`redrive dlq diff\` shows it`],
    ['removed', removedFact(message)],
    ['resolution', message.resolution],
    ['topic', topicText(message)],
    ['read from', placeOf(message.source_topic, message.source_partition, message.source_offset)],
    ['original record', placeOf(message.original_topic, message.original_partition, message.original_offset)],
    ['key', message.key ?? (message.key_base64 === undefined ? null : `base64 ${message.key_base64}`)],
    ['error class', message.error_class],
    ['consumer group', message.consumer_group],
    ['dialect', message.dialect],
    ['fingerprint', message.fingerprint],
    ['parent', message.parent_id],
    ['created', instantFact(message.created_at, now)],
    ['updated', instantFact(message.updated_at, now)],
    ['last retry', instantFact(message.last_retry_at, now)],
    ['next attempt', policyFact(message)],
    ['original time', instantFact(message.original_timestamp, now)],
  ];
}

function removedFact({ removed_parts: parts }: Message): string | null {
  if (parts === undefined) return null;
  const isWhole = parts.every((part) => part === 'error');
  const next = isWhole ? '' : '; cannot be retried until `redrive dlq edit` gives it again';
  return `content of ${parts.join(', ')}, before it was stored${next}`;
}

function policyFact({ next_attempt_at: at, retry_policy: policy }: Message): string | null {
  return at === null ? null : `${at}, by policy ${policy}`;
}

/** `orders.v1/3@1042`; null if the partition is unknown. */
export function placeOf(
  topic: string | null,
  partition: number | null,
  offset: number | null,
): string | null {
  if (topic === null || partition === null) return null;
  return `${topic}/${partition}${offset === null ? '' : `@${offset}`}`;
}

const historyColumns: readonly Column<HistoryEntry>[] = [
  textColumn('AT', ({ at }) => at),
  textColumn('EVENT', ({ event }) => event),
  textColumn('STATUS', ({ status_from, status_to }) =>
    status_from === status_to || status_from === null
      ? status_to
      : `${status_from} -> ${status_to ?? 'deleted'}`,
  ),
  optional(numberColumn('RETRIES', ({ retry_count }) => retry_count)),
  optional(numberColumn('ATTEMPT', ({ attempt_no }) => attempt_no)),
  textColumn('ACTOR', ({ actor }) => actor, 10),
  textColumn('PUBLISHED TO', ({ topic, partition, offset }) => placeOf(topic, partition, offset), 12),
  lastColumn('REASON', ({ reason, detail }) => [reason, detail].filter((text) => text !== null).join('; ')),
];

export const history = apiCommand({
  name: 'history',
  description: 'show the history of a message, also of a deleted one',
  route: 'GET /api/v1/dlq/messages/{id}/history',
  inputs: [messageId],
  examples: ['redrive dlq history 0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31'],
  print: rowsAs('history', historyColumns, 'no history'),
});
