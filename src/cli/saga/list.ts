import { Option, type Command } from 'commander';
import { withApiOptions, type ApiArgs } from '../api/api-options.ts';
import { openApiSession, type ApiSession } from '../api/api-session.ts';
import { showPages, withPageOptions, type PageArgs, type Pagination } from '../api/paged-list.ts';
import { withExamples } from '../examples.ts';
import { formatAge } from '../output/format-age.ts';
import type { Column } from '../output/render-table.ts';
import type { Terminal } from '../terminal.ts';
import { statuses, statusOf, toneOf, type Saga } from './saga-answer.ts';

type Page = Readonly<{ sagas: readonly Saga[]; pagination: Pagination }>;
type ListArgs = ApiArgs &
  PageArgs &
  Readonly<{ workflow?: string; status?: string; correlationId?: string; needsPerson?: boolean }>;

export function addListCommand(saga: Command, terminal: Terminal): void {
  withExamples(
    withPageOptions(
      withApiOptions(saga.command('list').description('sagas, newest first'))
        .option('--workflow <name>', 'only of this workflow')
        .addOption(new Option('--status <status>', 'only in this status').choices(statuses))
        .option('--correlation-id <id>', 'only with this correlation id')
        .option('--needs-person', 'only those that wait for a person'),
      'sagas',
    ),
    'redrive saga list --needs-person',
    'redrive saga list --workflow place-order --status FAILED',
  ).action((args: ListArgs) => {
    const session = openApiSession(terminal, args, 'sagas');
    const filter = {
      workflow_name: args.workflow,
      status: args.status,
      correlation_id: args.correlationId,
      needs_person: args.needsPerson === true ? 'true' : undefined,
    };
    return showPages(session, args, {
      whats: 'sagas',
      read: (query) => session.call<Page>({ path: [], query: { ...filter, ...query } }),
      itemsOf: (page: Page) => page.sagas,
      paginationOf: (page: Page) => page.pagination,
      lean: (each: Saga): Saga => ({ ...each, payload: null }),
      show: (sagas) => showSagas(session, sagas),
    });
  });
}

function showSagas({ print, now }: ApiSession, sagas: readonly Saga[]): void {
  if (sagas.length === 0) return print.note('no sagas');
  const columns: readonly Column<Saga>[] = [
    { title: 'ID', text: ({ saga_id }) => saga_id },
    {
      title: 'STATUS',
      text: statusOf,
      paint: (cell, { status, needs_person }) => print.paint(needs_person ? 'bad' : toneOf(status), cell),
    },
    { title: 'STEP', text: ({ current_step }) => String(current_step), align: 'right' },
    { title: 'AGE', text: ({ created_at }) => (created_at === null ? '-' : formatAge(created_at, now)) },
    { title: 'WORKFLOW', text: ({ workflow_name }) => workflow_name, minWidth: 10 },
    { title: 'WHY', text: ({ stuck, error_message }) => stuck?.reason ?? error_message ?? '', minWidth: 12 },
  ];
  print.table(columns, sagas);
}
