import { InvalidArgumentError, Option, type Command } from 'commander';
import { withApiOptions, type ApiArgs } from '../api/api-options.ts';
import { withExamples } from '../examples.ts';
import { formatAge } from '../output/format-age.ts';
import type { Column } from '../output/render-table.ts';
import type { Terminal } from '../terminal.ts';
import { wholeNumber } from '../whole-number.ts';
import { statuses, statusOf, toneOf, type Order } from './order.ts';
import { openOutboxSession, type OutboxSession } from './outbox-session.ts';

type Page = Readonly<{
  orders: readonly Order[];
  pagination: Readonly<{
    total_count: number;
    page: number;
    has_next: boolean;
    next_cursor?: string | null;
    total_is_estimate?: true;
  }>;
}>;

type ListArgs = ApiArgs &
  Readonly<{
    status?: string;
    destination?: string;
    key?: string;
    from?: string;
    to?: string;
    needsPerson?: boolean;
    page?: number;
    pageSize?: number;
    cursor?: string;
    all?: boolean;
    limit: number;
  }>;

const maxPageSize = 100;
const defaultLimit = 10_000;
const maxLimit = 1_000_000;

export function addListCommand(outbox: Command, terminal: Terminal): void {
  withExamples(
    withApiOptions(outbox.command('list').description('orders, newest first'))
      .addOption(
        new Option('--status <status>', 'only in this status')
          .choices(statuses)
          .argParser((text) => checkedStatus(text.toLowerCase())),
      )
      .option('--destination <name>', 'only to this destination')
      .option('--key <key>', 'only the one with this idempotency key')
      .option('--from <time>', 'only those made at this time or later, in ISO 8601')
      .option('--to <time>', 'only those made before this time, in ISO 8601')
      .option('--needs-person', 'only dead ones that nobody has decided about')
      .option('--page <number>', 'which page', wholeNumber(1, 1_000_000))
      .option('--page-size <number>', 'how many on a page (default: 20)', wholeNumber(1, maxPageSize))
      .option('--cursor <cursor>', "go on after a page: its next_cursor, or '' for the first page")
      .addOption(new Option('--all', 'all pages, up to --limit orders').conflicts('page'))
      .option('--limit <number>', 'where --all ends', wholeNumber(1, maxLimit), defaultLimit),
    'redrive outbox list --needs-person',
    'redrive outbox list --destination broker --status failed --from 2026-02-20T00:00:00Z',
    'redrive outbox list --all --json | jq -r .orders[].idempotency_key',
  ).action((args: ListArgs) => listOrders(terminal, args));
}

function checkedStatus(status: string): string {
  if (!statuses.some((known) => known === status))
    throw new InvalidArgumentError(`It is none of ${statuses.join(', ')}.`);
  return status;
}

async function listOrders(terminal: Terminal, args: ListArgs): Promise<void> {
  const session = openOutboxSession(terminal, args);
  if (args.all === true) return listAll(session, args);
  session.show(await readPage(session, args), (page) => {
    showOrders(session, page.orders);
    sayWhatFollows(session, page);
  });
}

function readPage(session: OutboxSession, args: ListArgs) {
  return session.call<Page>({
    path: ['orders'],
    query: {
      status: args.status,
      destination: args.destination,
      idempotency_key: args.key,
      created_from: args.from,
      created_to: args.to,
      needs_person: args.needsPerson === true ? 'true' : undefined,
      page: args.page?.toString(),
      page_size: args.pageSize?.toString(),
      cursor: args.cursor,
    },
  });
}

/** As JSON a line per page, each written as it comes; as a table the rows of all pages together. */
async function listAll(session: OutboxSession, args: ListArgs): Promise<void> {
  const shown: Order[] = [];
  let count = 0;
  let cursor: string | null = args.cursor ?? '';
  while (cursor !== null && count < args.limit) {
    const pageSize = Math.min(args.pageSize ?? maxPageSize, args.limit - count);
    const { text, value } = await readPage(session, { ...args, cursor, pageSize });
    if (args.json === true) session.print.json(text);
    // Requests are not shown here, and a million of them would not fit into memory.
    else shown.push(...value.orders.map((order) => ({ ...order, request: null })));
    count += value.orders.length;
    cursor = value.pagination.next_cursor ?? null;
  }
  if (args.json !== true) showOrders(session, shown);
  if (cursor !== null) session.print.note(`ended at --limit ${args.limit}; go on with --cursor ${cursor}`);
}

function showOrders({ print, now }: OutboxSession, orders: readonly Order[]): void {
  if (orders.length === 0) return print.note('no orders');
  const columns: readonly Column<Order>[] = [
    { title: 'ID', text: ({ id }) => String(id), align: 'right' },
    {
      title: 'STATUS',
      text: statusOf,
      paint: (cell, { status }) => print.paint(toneOf(status), cell),
    },
    { title: 'RETRIES', text: ({ retry_count }) => String(retry_count), align: 'right' },
    { title: 'AGE', text: ({ created_at }) => formatAge(created_at, now) },
    { title: 'DESTINATION', text: ({ destination }) => destination, minWidth: 12 },
    { title: 'KEY', text: ({ idempotency_key }) => idempotency_key, minWidth: 16 },
    { title: 'ERROR', text: ({ last_error }) => last_error ?? '', minWidth: 12 },
  ];
  print.table(columns, orders);
}

function sayWhatFollows({ print }: OutboxSession, { orders, pagination }: Page): void {
  const { total_count, page, has_next, next_cursor, total_is_estimate } = pagination;
  if (orders.length === 0) return;
  const total = `${total_is_estimate === true ? 'about ' : ''}${total_count}`;
  const next = next_cursor === undefined ? `--page ${page + 1}` : `--cursor ${next_cursor}`;
  print.note(`${orders.length} of ${total} orders${has_next ? `; next: ${next}` : ''}`);
}
