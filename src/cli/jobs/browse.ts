import type { ApiSession } from '../api/api-session.ts';
import { ageColumn, lastColumn, numberColumn, optional, textColumn } from '../output/columns.ts';
import {
  instantFact,
  showFacts,
  showJson,
  showRows,
  showText,
  showTitle,
  type Fact,
} from '../output/facts.ts';
import type { Column } from '../output/render-table.ts';
import { apiCommand } from '../slice/api-command.ts';
import type { Input } from '../slice/define-command.ts';
import { facetsCommand } from '../slice/facets-command.ts';
import { noteMasks } from '../slice/note-masks.ts';
import { revealCommand } from '../slice/reveal-command.ts';
import { listCommand } from '../slice/list-command.ts';
import { timeInputs } from '../slice/time-inputs.ts';
import { jobId, statusColumn, statuses, statusOf, toneOf, type Job } from './job.ts';

type Attempt = Readonly<{
  retry_count: number;
  status_to: string;
  error: string;
  error_class: string | null;
  stack: string | null;
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

type Group = Readonly<{
  queue: string;
  fingerprint: string | null;
  error: string | null;
  count: number;
  last_at: string | null;
}>;
type DeadPage = Readonly<{ groups?: readonly Group[]; groups_are_partial?: true }>;

const filters: readonly Input[] = [
  { flags: '--queue <name>', text: 'only jobs of this queue' },
  { flags: '--fingerprint <fingerprint>', text: 'only jobs whose last failure has this fingerprint' },
  ...timeInputs('only jobs created', { since: 'created_from', until: 'created_to' }),
];

const resolutions = ['unresolved', 'cancelled', 'discarded', 'any'];

const pages = {
  items: 'jobs',
  unused: ['payload', 'result', 'progress'],
  columns: [
    textColumn<Job>('ID', ({ job_id }) => job_id),
    statusColumn,
    optional(
      numberColumn<Job>('FAILURES', ({ retry_count, max_retries }) => `${retry_count}/${max_retries}`),
    ),
    ageColumn<Job>('AGE', ({ created_at }) => created_at),
    textColumn<Job>('QUEUE', ({ queue }) => queue, 8),
    lastColumn<Job>('ERROR', ({ error_message }) => error_message),
  ],
} as const;

const allFilters: readonly Input[] = [
  ...filters,
  { flags: '--status <status>', text: 'only jobs in this status', choices: statuses },
  { flags: '--dedupe-key <key>', text: 'only jobs with this dedupe key' },
  { flags: '--error <text>', text: 'only jobs whose error starts with this text' },
  { flags: '--resolution <resolution>', text: 'only jobs with this resolution', choices: resolutions },
];

export const list = listCommand<Job>({
  name: 'list',
  description: 'list jobs, newest first',
  route: 'GET /api/v1/jobs',
  inputs: allFilters,
  examples: [
    'redrive jobs list --queue summarize --status failed',
    'redrive jobs list --all --json | jq -r .jobs[].job_id',
  ],
  ...pages,
});

export const facets = facetsCommand({
  description: 'count jobs by status and queue',
  route: 'GET /api/v1/jobs/facets',
  items: 'jobs',
  inputs: allFilters,
  examples: ['redrive jobs facets', 'redrive jobs facets --queue summarize --since 1h'],
});

export const dead = listCommand<Job, DeadPage>({
  name: 'dead',
  description: 'list dead jobs, grouped by cause',
  route: 'GET /api/v1/jobs/dead',
  inputs: [
    ...filters,
    { flags: '--error <text>', text: 'only jobs whose error starts with this text' },
    {
      flags: '--resolution <resolution>',
      text: 'only jobs with this resolution (default: unresolved)',
      choices: resolutions,
    },
  ],
  examples: ['redrive jobs dead', "redrive jobs dead --queue summarize --error 'timed out'"],
  ...pages,
  printAbove: showGroups,
});

const groupColumns: readonly Column<Group>[] = [
  numberColumn('COUNT', ({ count }) => count),
  textColumn('QUEUE', ({ queue }) => queue, 10),
  ageColumn('LAST', ({ last_at }) => last_at),
  textColumn('FINGERPRINT', ({ fingerprint }) => fingerprint, 10),
  lastColumn('ERROR', ({ error }) => error),
];

function showGroups({ groups = [], groups_are_partial }: DeadPage, { print }: ApiSession): void {
  if (groups.length === 0) return;
  print.table(groupColumns, groups);
  if (groups_are_partial === true) print.note('the counts cover only the newest dead jobs');
  showTitle(print, 'newest');
}

type JobDetails = Job & Readonly<{ attempts: readonly Attempt[]; actions: readonly Action[] }>;

export const show = apiCommand<JobDetails>({
  name: 'show',
  description: 'show a job with its payload, failures and actions',
  route: 'GET /api/v1/jobs/{id}',
  inputs: [jobId],
  examples: ['redrive jobs show 01a1dfae-c3a5-7000-8007-f35eedc32390'],
  print(job, session) {
    printJob(job, session);
    noteMasks(session.print, job, `redrive jobs reveal ${job.job_id}`);
  },
});

export const reveal = revealCommand<JobDetails>({
  description: 'show a job with what is masked elsewhere',
  route: 'POST /api/v1/jobs/{id}/reveal',
  inputs: [jobId],
  examples: ["redrive jobs reveal 01a1dfae-c3a5-7000-8007-f35eedc32390 --reason 'ticket 4711'"],
  print: printJob,
});

function printJob(job: JobDetails, { print, now }: ApiSession): void {
  showFacts(print, factsOf(job, now));
  showJson(print, 'payload', job.payload);
  if (job.progress !== null) showJson(print, 'progress', job.progress);
  if (job.result !== null) showJson(print, 'result', job.result);
  showRows(print, 'failures', attemptColumns, job.attempts);
  const stack = job.attempts.at(-1)?.stack ?? null;
  if (stack !== null) showText(print, 'stack of the last failure', stack);
  showRows(print, 'actions', actionColumns, job.actions);
}

const attemptColumns: readonly Column<Attempt>[] = [
  numberColumn('FAILURE', ({ retry_count }) => retry_count),
  textColumn('ENDED', ({ ended_at }) => ended_at),
  textColumn('NEXT STATUS', ({ status_to }) => status_to),
  textColumn('WORKER', ({ worker }) => worker, 10),
  lastColumn('ERROR', ({ error, error_class }) =>
    error_class === null || error_class === 'Error' ? error : `${error_class}: ${error}`,
  ),
];

const actionColumns: readonly Column<Action>[] = [
  textColumn('AT', ({ at }) => at),
  textColumn('ACTION', ({ action }) => action),
  textColumn('STATUS', ({ status_from, status_to }) => `${status_from} -> ${status_to}`, 12),
  textColumn('ACTOR', ({ actor }) => actor, 10),
  lastColumn('REASON', ({ reason }) => reason),
];

function factsOf(job: Job, now: Date): readonly Fact[] {
  return [
    ['id', job.job_id],
    ['queue', job.queue],
    ['status', statusOf(job), toneOf(job)],
    ['needs attention', job.needs_attention ? 'run redrive jobs requeue or discard' : null, 'bad'],
    ['failures', `${job.retry_count} of ${job.max_retries}`],
    ['last error', job.error_message],
    ['fingerprint', job.fingerprint],
    ['deferred', job.deferrals === 0 ? null : `${job.deferrals} times`],
    ['dedupe key', job.dedupe_key],
    ['priority', job.priority === 0 ? null : String(job.priority)],
    ['due', instantFact(job.run_at, now)],
    ['worker', job.lease?.owner ?? null],
    ['lease expires', job.lease?.until ?? null],
    ['created', instantFact(job.created_at, now)],
    ['started', instantFact(job.started_at, now)],
    ['ended', instantFact(job.completed_at, now)],
    ['trace', job.trace],
  ];
}
