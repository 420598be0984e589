import type { Command } from 'commander';
import { withApiOptions, type ApiArgs } from '../api/api-options.ts';
import { openApiSession } from '../api/api-session.ts';
import { withExamples } from '../examples.ts';
import { instantFact, showFacts, showJson, showTitle, type Fact } from '../output/facts.ts';
import type { Printer } from '../output/printer.ts';
import type { Column } from '../output/render-table.ts';
import type { Terminal } from '../terminal.ts';
import { statusOf, toneOf, type Job } from './job.ts';

type Attempt = Readonly<{
  retry_count: number;
  status_to: string;
  error: string;
  worker: string | null;
  started_at: string | null;
  ended_at: string | null;
}>;

type Action = Readonly<{
  action: string;
  status_from: string;
  status_to: string;
  actor: string;
  reason: string | null;
  at: string | null;
}>;

type ToldJob = Job & Readonly<{ attempts: readonly Attempt[]; actions: readonly Action[] }>;

export function addShowCommand(jobs: Command, terminal: Terminal): void {
  withExamples(
    withApiOptions(
      jobs.command('show').description('one job with its payload, its failures and what people did'),
    ).argument('<id>', "the job's id"),
    'redrive jobs show 01a1dfae-c3a5-7000-8007-f35eedc32390',
  ).action(async (id: string, args: ApiArgs) => {
    const session = openApiSession(terminal, args, 'jobs');
    const { print, now } = session;
    session.show(await session.call<ToldJob>({ path: [id] }), (job) => {
      showFacts(print, factsOf(job, now));
      showJson(print, 'payload', job.payload);
      if (job.progress !== null) showJson(print, 'progress', job.progress);
      if (job.result !== null) showJson(print, 'result', job.result);
      showTable(print, { title: 'failures', columns: attemptColumns, rows: job.attempts });
      showTable(print, { title: 'what people did', columns: actionColumns, rows: job.actions });
    });
  });
}

const attemptColumns: readonly Column<Attempt>[] = [
  { title: 'FAILURE', text: ({ retry_count }) => String(retry_count), align: 'right' },
  { title: 'ENDED', text: ({ ended_at }) => ended_at ?? '-' },
  { title: 'THEN', text: ({ status_to }) => status_to },
  { title: 'WORKER', text: ({ worker }) => worker ?? '-', minWidth: 10 },
  { title: 'ERROR', text: ({ error }) => error, minWidth: 12 },
];

const actionColumns: readonly Column<Action>[] = [
  { title: 'AT', text: ({ at }) => at ?? '-' },
  { title: 'ACTION', text: ({ action }) => action },
  { title: 'STATUS', text: ({ status_from, status_to }) => `${status_from} -> ${status_to}` },
  { title: 'ACTOR', text: ({ actor }) => actor, minWidth: 10 },
  { title: 'WHY', text: ({ reason }) => reason ?? '', minWidth: 10 },
];

function showTable<Row>(
  print: Printer,
  {
    title,
    columns,
    rows,
  }: Readonly<{ title: string; columns: readonly Column<Row>[]; rows: readonly Row[] }>,
): void {
  if (rows.length === 0) return;
  showTitle(print, title);
  print.table(columns, rows);
}

function factsOf(job: Job, now: Date): readonly Fact[] {
  return [
    ['id', job.job_id],
    ['queue', job.queue],
    ['status', statusOf(job), toneOf(job.status)],
    ['needs a person', job.needs_person ? 'redrive jobs requeue, or discard' : null, 'bad'],
    ['failures', `${job.retry_count} of ${job.max_retries}`],
    ['last error', job.error_message],
    ['put off', job.deferrals === 0 ? null : `${job.deferrals} times`],
    ['dedupe key', job.dedupe_key],
    ['priority', job.priority === 0 ? null : String(job.priority)],
    ['due', instantFact(job.run_at, now)],
    ['worker', job.lease?.owner ?? null],
    ['lease ends', job.lease?.until ?? null],
    ['created', instantFact(job.created_at, now)],
    ['started', instantFact(job.started_at, now)],
    ['ended', instantFact(job.completed_at, now)],
    ['trace', job.trace],
  ];
}
