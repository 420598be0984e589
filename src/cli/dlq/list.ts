import { InvalidArgumentError, Option, type Command } from 'commander';
import { withApiOptions, type ApiArgs } from '../api/api-options.ts';
import { withExamples } from '../examples.ts';
import { formatAge } from '../output/format-age.ts';
import type { Column } from '../output/render-table.ts';
import type { Terminal } from '../terminal.ts';
import { wholeNumber } from '../whole-number.ts';
import { callAndShow, openDlqSession, type DlqSession } from './dlq-session.ts';
import { statuses, toneOf, type Message } from './message.ts';

type Topic = Readonly<{
  topic: string;
  total: number;
  counts: Readonly<Record<string, number>>;
  oldest_pending_at: string | null;
  arrived_per_minute: number;
}>;

type Page = Readonly<{
  messages: readonly Message[];
  pagination: Readonly<{
    total_count: number;
    page: number;
    page_size: number;
    has_next: boolean;
    next_cursor?: string | null;
    total_is_estimate?: true;
  }>;
}>;

type ListArgs = ApiArgs &
  Readonly<{
    status?: string;
    page?: number;
    pageSize?: number;
    cursor?: string;
    all?: boolean;
    limit: number;
  }>;

const maxPageSize = 100;
const defaultLimit = 10_000;
const maxLimit = 1_000_000;

export function addListCommands(dlq: Command, terminal: Terminal): void {
  withExamples(
    withApiOptions(dlq.command('topics').description('topics with their messages by status')),
    'redrive dlq topics',
  ).action((args: ApiArgs) =>
    callAndShow<{ topics: readonly Topic[] }>(
      { terminal, args },
      { path: [] },
      ({ topics }, { print, now }) =>
        topics.length === 0 ? print.note('no topic has messages') : print.table(topicColumns(now), topics),
    ),
  );

  withExamples(
    withApiOptions(dlq.command('list').description('messages, newest first'))
      .argument('[topic]', 'only of this topic, by its original or its dead-letter name')
      .addOption(
        new Option('--status <status>', 'only in this status')
          .choices(statuses)
          .argParser((text) => checkedStatus(text.toUpperCase())),
      )
      .option('--page <number>', 'which page', wholeNumber(1, 1_000_000))
      .option('--page-size <number>', 'how many on a page (default: 20)', wholeNumber(1, maxPageSize))
      .option('--cursor <cursor>', "go on after a page: its next_cursor, or '' for the first page")
      .addOption(new Option('--all', 'all pages, up to --limit messages').conflicts('page'))
      .option('--limit <number>', 'where --all ends', wholeNumber(1, maxLimit), defaultLimit),
    'redrive dlq list',
    'redrive dlq list orders.v1 --status DEAD',
    'redrive dlq list --all --json | jq -r .messages[].id',
  ).action((topic: string | undefined, args: ListArgs) => listMessages(terminal, topic, args));
}

function checkedStatus(status: string): string {
  if (!statuses.some((known) => known === status))
    throw new InvalidArgumentError(`It is none of ${statuses.join(', ')}.`);
  return status;
}

async function listMessages(terminal: Terminal, topic: string | undefined, args: ListArgs): Promise<void> {
  const session = openDlqSession(terminal, args);
  if (args.all === true) return listAll(session, topic, args);
  const { text, value } = await readPage(session, topic, args);
  if (args.json === true) return session.print.json(text);
  showMessages(session, value.messages);
  sayWhatFollows(session, value);
}

function readPage(
  session: DlqSession,
  topic: string | undefined,
  { status, page, pageSize, cursor }: Pick<ListArgs, 'status' | 'page' | 'pageSize' | 'cursor'>,
) {
  return session.call<Page>({
    path: ['messages'],
    query: { topic, status, page: page?.toString(), page_size: pageSize?.toString(), cursor },
  });
}

/** As JSON a line per page, each written as it comes; as a table the rows of all pages together. */
async function listAll(session: DlqSession, topic: string | undefined, args: ListArgs): Promise<void> {
  const shown: Message[] = [];
  let count = 0;
  let cursor: string | null = args.cursor ?? '';
  while (cursor !== null && count < args.limit) {
    const pageSize = Math.min(args.pageSize ?? maxPageSize, args.limit - count);
    const { text, value } = await readPage(session, topic, { ...args, cursor, pageSize });
    if (args.json === true) session.print.json(text);
    // Payloads are not shown here, and a million of them would not fit into memory.
    else shown.push(...value.messages.map((message) => ({ ...message, payload: null })));
    count += value.messages.length;
    cursor = value.pagination.next_cursor ?? null;
  }
  if (args.json !== true) showMessages(session, shown);
  if (cursor !== null) session.print.note(`ended at --limit ${args.limit}; go on with --cursor ${cursor}`);
}

function showMessages({ print, now }: DlqSession, messages: readonly Message[]): void {
  if (messages.length === 0) return print.note('no messages');
  const columns: readonly Column<Message>[] = [
    { title: 'ID', text: ({ id }) => id },
    {
      title: 'STATUS',
      text: ({ status }) => status,
      paint: (cell, { status }) => print.paint(toneOf(status), cell),
    },
    { title: 'RETRIES', text: ({ retry_count, max_retries }) => `${retry_count}/${max_retries}` },
    { title: 'AGE', text: ({ created_at }) => formatAge(created_at, now) },
    {
      title: 'TOPIC',
      text: ({ original_topic, unroutable }) =>
        unroutable ? `${original_topic} (unroutable)` : original_topic,
      minWidth: 12,
    },
    { title: 'ERROR', text: ({ error_message }) => error_message, minWidth: 12 },
  ];
  print.table(columns, messages);
}

function sayWhatFollows({ print }: DlqSession, { messages, pagination }: Page): void {
  const { total_count, page, has_next, next_cursor, total_is_estimate } = pagination;
  if (messages.length === 0) return;
  const total = `${total_is_estimate === true ? 'about ' : ''}${total_count}`;
  const next = next_cursor === undefined ? `--page ${page + 1}` : `--cursor ${next_cursor}`;
  print.note(`${messages.length} of ${total} messages${has_next ? `; next: ${next}` : ''}`);
}

function topicColumns(now: Date): readonly Column<Topic>[] {
  return [
    { title: 'TOPIC', text: ({ topic }) => topic, minWidth: 20 },
    ...statuses.map(countColumn),
    { title: 'TOTAL', text: ({ total }) => String(total), align: 'right' },
    { title: 'OLDEST PENDING', text: ({ oldest_pending_at }) => formatAge(oldest_pending_at, now) },
    { title: 'PER MINUTE', text: ({ arrived_per_minute }) => String(arrived_per_minute), align: 'right' },
  ];
}

function countColumn(status: string): Column<Topic> {
  return { title: status, text: ({ counts }) => String(counts[status] ?? 0), align: 'right' };
}
