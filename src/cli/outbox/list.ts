import { InvalidArgumentError, Option, type Command } from 'commander';
import { withApiOptions, type ApiArgs } from '../api/api-options.ts';
import { showPages, withPageOptions, type PageArgs, type Pagination } from '../api/paged-list.ts';
import { withExamples } from '../examples.ts';
import { formatAge } from '../output/format-age.ts';
import type { Column } from '../output/render-table.ts';
import type { Terminal } from '../terminal.ts';
import { statuses, statusOf, toneOf, type Order } from './order.ts';
import { openApiSession, type ApiSession } from '../api/api-session.ts';

type Page = Readonly<{ orders: readonly Order[]; pagination: Pagination }>;

type ListArgs = ApiArgs &
  PageArgs &
  Readonly<{
    status?: string;
    destination?: string;
    key?: string;
    from?: string;
    to?: string;
    needsPerson?: boolean;
  }>;

export function addListCommand(outbox: Command, terminal: Terminal): void {
  withExamples(
    withPageOptions(
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
        .option('--needs-person', 'only dead ones that nobody has decided about'),
      'orders',
    ),
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

function listOrders(terminal: Terminal, args: ListArgs): Promise<void> {
  const session = openApiSession(terminal, args, 'outbox');
  const filter = {
    status: args.status,
    destination: args.destination,
    idempotency_key: args.key,
    created_from: args.from,
    created_to: args.to,
    needs_person: args.needsPerson === true ? 'true' : undefined,
  };
  return showPages<Page, Order>(session, args, {
    whats: 'orders',
    read: (query) => session.call<Page>({ path: ['orders'], query: { ...filter, ...query } }),
    itemsOf: ({ orders }) => orders,
    paginationOf: ({ pagination }) => pagination,
    lean: (order) => ({ ...order, request: null }),
    show: (orders) => showOrders(session, orders),
  });
}

function showOrders({ print, now }: ApiSession, orders: readonly Order[]): void {
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
