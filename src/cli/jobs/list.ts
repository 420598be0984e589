import { Option, type Command } from 'commander';
import { withApiOptions, type ApiArgs } from '../api/api-options.ts';
import { openApiSession, type ApiSession } from '../api/api-session.ts';
import { showPages, withPageOptions, type PageArgs, type Pagination } from '../api/paged-list.ts';
import { withExamples } from '../examples.ts';
import { formatAge } from '../output/format-age.ts';
import { showTitle } from '../output/facts.ts';
import type { Column } from '../output/render-table.ts';
import type { Terminal } from '../terminal.ts';
import { statuses, statusOf, toneOf, type Job } from './job.ts';

type Group = Readonly<{ queue: string; error: string | null; count: number; last_at: string | null }>;
type Page = Readonly<{
  jobs: readonly Job[];
  pagination: Pagination;
  groups?: readonly Group[];
  groups_are_partial?: true;
}>;
type FilterArgs = ApiArgs & PageArgs & Readonly<{ queue?: string; from?: string; to?: string }>;
type ListArgs = FilterArgs & Readonly<{ status?: string; dedupeKey?: string }>;
type DeadArgs = FilterArgs & Readonly<{ error?: string; resolution?: string }>;

export function addListCommands(jobs: Command, terminal: Terminal): void {
  withExamples(
    withFilterOptions(jobs.command('list').description('jobs, newest first'))
      .addOption(new Option('--status <status>', 'only in this status').choices(statuses))
      .option('--dedupe-key <key>', 'only with this dedupe key'),
    'redrive jobs list --queue summarize --status failed',
    'redrive jobs list --all --json | jq -r .jobs[].job_id',
  ).action((args: ListArgs) => {
    const session = openApiSession(terminal, args, 'jobs');
    const filter = { ...filterOf(args), status: args.status, dedupe_key: args.dedupeKey };
    return showPages(session, args, jobPages(session, [], filter));
  });

  withExamples(
    withFilterOptions(jobs.command('dead').description('dead letters, and what most of them died of'))
      .option('--error <text>', 'only those whose error begins like this')
      .addOption(
        new Option('--resolution <what>', 'by what was decided (default: nobody has decided)').choices([
          'unresolved',
          'cancelled',
          'discarded',
          'any',
        ]),
      ),
    'redrive jobs dead',
    "redrive jobs dead --queue summarize --error 'timeout:'",
  ).action((args: DeadArgs) => {
    const session = openApiSession(terminal, args, 'jobs');
    const filter = { ...filterOf(args), error: args.error, resolution: args.resolution };
    return showPages(session, args, jobPages(session, ['dead'], filter));
  });
}

function withFilterOptions(command: Command): Command {
  return withPageOptions(
    withApiOptions(command)
      .option('--queue <name>', 'only of this queue')
      .option('--from <time>', 'only those made at this time or later, in ISO 8601')
      .option('--to <time>', 'only those made before this time, in ISO 8601'),
    'jobs',
  );
}

function filterOf({ queue, from, to }: FilterArgs): Readonly<Record<string, string | undefined>> {
  return { queue, created_from: from, created_to: to };
}

function jobPages(
  session: ApiSession,
  path: readonly string[],
  filter: Readonly<Record<string, string | undefined>>,
) {
  let groups: Pick<Page, 'groups' | 'groups_are_partial'> = {};
  return {
    whats: 'jobs',
    async read(query: Readonly<Record<string, string | undefined>>) {
      const answer = await session.call<Page>({ path, query: { ...filter, ...query } });
      groups = answer.value;
      return answer;
    },
    itemsOf: (page: Page) => page.jobs,
    paginationOf: (page: Page) => page.pagination,
    lean: (job: Job): Job => ({ ...job, payload: null, result: null, progress: null }),
    show(jobs: readonly Job[]) {
      showGroups(session, groups);
      showJobs(session, jobs);
    },
  };
}

function showGroups(
  { print, now }: ApiSession,
  { groups = [], groups_are_partial }: Pick<Page, 'groups' | 'groups_are_partial'>,
): void {
  if (groups.length === 0) return;
  const columns: readonly Column<Group>[] = [
    { title: 'COUNT', text: ({ count }) => String(count), align: 'right' },
    { title: 'QUEUE', text: ({ queue }) => queue, minWidth: 10 },
    { title: 'LAST', text: ({ last_at }) => (last_at === null ? '-' : formatAge(last_at, now)) },
    { title: 'ERROR', text: ({ error }) => error ?? '', minWidth: 12 },
  ];
  print.table(columns, groups);
  if (groups_are_partial === true) print.note('only the newest dead letters are counted');
  showTitle(print, 'the newest');
}

function showJobs({ print, now }: ApiSession, jobs: readonly Job[]): void {
  if (jobs.length === 0) return print.note('no jobs');
  const columns: readonly Column<Job>[] = [
    { title: 'ID', text: ({ job_id }) => job_id },
    { title: 'STATUS', text: statusOf, paint: (cell, { status }) => print.paint(toneOf(status), cell) },
    {
      title: 'FAILURES',
      text: ({ retry_count, max_retries }) => `${retry_count}/${max_retries}`,
      align: 'right',
    },
    { title: 'AGE', text: ({ created_at }) => (created_at === null ? '-' : formatAge(created_at, now)) },
    { title: 'QUEUE', text: ({ queue }) => queue, minWidth: 10 },
    { title: 'ERROR', text: ({ error_message }) => error_message ?? '', minWidth: 12 },
  ];
  print.table(columns, jobs);
}
