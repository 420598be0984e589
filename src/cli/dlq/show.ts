import type { Command } from 'commander';
import { withApiOptions, type ApiArgs } from '../api/api-options.ts';
import { withExamples } from '../examples.ts';
import { escapeLines, escapeText } from '../output/escape-text.ts';
import { formatAge } from '../output/format-age.ts';
import type { Column } from '../output/render-table.ts';
import type { Terminal } from '../terminal.ts';
import { callAndShow, type DlqSession } from './dlq-session.ts';
import { toneOf, type Message } from './message.ts';

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

export function addShowCommands(dlq: Command, terminal: Terminal): void {
  withExamples(
    withApiOptions(dlq.command('show').description('one message with its error and its payload')).argument(
      '<id>',
      "the message's id",
    ),
    'redrive dlq show 0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31',
  ).action((id: string, args: ApiArgs) =>
    callAndShow<Message>({ terminal, args }, { path: ['messages', id] }, (message, session) =>
      showMessage(session, message),
    ),
  );

  withExamples(
    withApiOptions(
      dlq.command('history').description('what happened to a message, also to a deleted one'),
    ).argument('<id>', "the message's id"),
    'redrive dlq history 0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31',
  ).action((id: string, args: ApiArgs) =>
    callAndShow<{ history: readonly HistoryEntry[] }>(
      { terminal, args },
      { path: ['messages', id, 'history'] },
      ({ history }, { print }) =>
        history.length === 0 ? print.note('no history') : print.table(historyColumns, history),
    ),
  );
}

function showMessage(session: DlqSession, message: Message): void {
  const { print } = session;
  const facts = factsOf(message, session.now).filter(([, value]) => value !== null);
  const width = Math.max(...facts.map(([name]) => name.length)) + 2;
  for (const [name, value] of facts) {
    const text = escapeText(value ?? '');
    const isStatus = name === 'status';
    print.line(
      `${print.paint('faint', name.padEnd(width))}${isStatus ? print.paint(toneOf(message.status), text) : text}`,
    );
  }
  section(session, 'error', escapeLines(message.error_message));
  if (message.error_stack) section(session, 'stack', escapeLines(message.error_stack));
  if (message.payload === null)
    section(session, 'payload', ['none as JSON; `redrive dlq raw` has the bytes']);
  else section(session, 'payload', JSON.stringify(message.payload, null, 2).split('\n').map(escapeText));
}

function section({ print }: DlqSession, title: string, lines: readonly string[]): void {
  print.line('');
  print.line(print.paint('faint', title));
  for (const line of lines) print.line(`  ${line}`);
}

type Fact = readonly [name: string, value: string | null];

function factsOf(message: Message, now: Date): readonly Fact[] {
  const at = (instant: string | null): string | null =>
    instant === null ? null : `${instant} (${formatAge(instant, now)})`;
  return [
    ['id', message.id],
    ['status', `${message.status}${message.archived ? ' (archived)' : ''}`],
    ['retries', `${message.retry_count} of ${message.max_retries}, attempt ${message.attempt_no}`],
    ['resolution', message.resolution],
    ['topic', `${message.original_topic}${message.unroutable ? ' (unroutable)' : ''}`],
    ['came from', placeOf(message.source_topic, message.source_partition, message.source_offset)],
    ['first at', placeOf(message.original_topic, message.original_partition, message.original_offset)],
    ['key', message.key ?? (message.key_base64 === undefined ? null : `base64 ${message.key_base64}`)],
    ['error class', message.error_class],
    ['consumer group', message.consumer_group],
    ['dialect', message.dialect],
    ['fingerprint', message.fingerprint],
    ['parent', message.parent_id],
    ['created', at(message.created_at)],
    ['updated', at(message.updated_at)],
    ['last retry', at(message.last_retry_at)],
    ['original time', at(message.original_timestamp)],
  ];
}

/** `orders.v1/3@1042`; null where the partition is not known. */
function placeOf(topic: string | null, partition: number | null, offset: number | null): string | null {
  if (topic === null || partition === null) return null;
  return `${topic}/${partition}${offset === null ? '' : `@${offset}`}`;
}

const historyColumns: readonly Column<HistoryEntry>[] = [
  { title: 'AT', text: ({ at }) => at },
  { title: 'EVENT', text: ({ event }) => event },
  { title: 'STATUS', text: statusChange },
  { title: 'RETRIES', text: ({ retry_count }) => String(retry_count), align: 'right' },
  { title: 'ATTEMPT', text: ({ attempt_no }) => String(attempt_no), align: 'right' },
  { title: 'ACTOR', text: ({ actor }) => actor, minWidth: 10 },
  {
    title: 'PUBLISHED TO',
    text: (entry) => placeOf(entry.topic, entry.partition, entry.offset) ?? '-',
    minWidth: 12,
  },
  {
    title: 'WHY',
    text: ({ reason, detail }) => [reason, detail].filter((one) => one !== null).join('; '),
    minWidth: 10,
  },
];

function statusChange({ status_from, status_to }: HistoryEntry): string {
  if (status_from === status_to || status_from === null) return status_to ?? '-';
  return `${status_from} -> ${status_to ?? 'gone'}`;
}
