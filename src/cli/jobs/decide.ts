import { escapeText } from '../../kernel/escape-text.ts';
import type { ApiSession } from '../api/api-session.ts';
import { UsageError } from '../exit-code.ts';
import { ageColumn, lastColumn, textColumn } from '../output/columns.ts';
import type { Column } from '../output/render-table.ts';
import { apiCommand, sliceCommand, type AddCommand } from '../slice/api-command.ts';
import { nameOf, type Input } from '../slice/define-command.ts';
import { requestOf } from '../slice/request-of.ts';
import { timeInputs } from '../slice/time-inputs.ts';
import { wholeNumber } from '../whole-number.ts';
import { jobId, jobIds, toneOf } from './job.ts';

type Acted = Readonly<{ job_id: string; status: string }>;
type Sample = Readonly<{ job_id: string; queue: string; error: string | null; completed_at: string | null }>;
type Preview = Readonly<{
  preview: true;
  matched: number;
  has_more: boolean;
  dedupe_key_taken: number;
  sample: readonly Sample[];
}>;
type Requeued = Readonly<{
  preview: false;
  requeued: number;
  skipped: number;
  skipped_jobs: readonly Readonly<{ job_id: string; reason: string; holder_job_id: string | null }>[];
  has_more: boolean;
}>;

const reason: Input = { flags: '--reason <text>', text: 'reason, for the history' };

export const discard = decide('discard', 'acknowledge a dead job', "'the article is gone'");
export const cancel = decide(
  'cancel',
  'cancel an unfinished job; a running worker is told to stop',
  "'sent by mistake'",
);

function decide(name: 'discard' | 'cancel', description: string, why: string): AddCommand {
  return apiCommand<Acted>({
    name,
    description,
    route: `POST /api/v1/jobs/{id}/${name}`,
    inputs: [jobId, reason],
    examples: [`redrive jobs ${name} 01a1dfae-c3a5-7000-8007-f35eedc32390 --reason ${why}`],
    print: printActed,
  });
}

function printActed({ job_id, status }: Acted, { print }: ApiSession): void {
  print.line(`${job_id} ${print.paint(toneOf({ status }), escapeText(status))}`);
}

const filters: readonly Input[] = [
  { flags: '--queue <name>', text: 'dead jobs of this queue' },
  { flags: '--error <text>', text: 'dead jobs whose error starts with this text' },
  { flags: '--fingerprint <fingerprint>', text: 'dead jobs whose last failure has this fingerprint' },
  ...timeInputs('dead jobs created', { since: 'created_from', until: 'created_to' }),
];
const ids: Input = {
  flags: '[ids...]',
  text: 'job ids; or select jobs with the options',
  field: 'job_ids',
  ids: jobIds,
};
const limit: Input = {
  flags: '--limit <number>',
  text: 'maximum number of jobs',
  parse: wholeNumber(1, 10_000),
};
const preview: Input = { flags: '--preview', text: 'only show what would be requeued' };
const inputs = [...filters, ids, limit, preview, reason];

/** One id is requeued by its own route, which fails if that job cannot be; several are requeued as far as possible. */
export const requeue = sliceCommand(
  {
    name: 'requeue',
    route: 'POST /api/v1/jobs/requeue',
    description: 'run dead jobs again with all their retries',
    inputs,
    examples: [
      "redrive jobs requeue 01a1dfae-c3a5-7000-8007-f35eedc32390 --reason 'the summariser is back'",
      "redrive jobs requeue --queue summarize --error 'timed out' --preview",
    ],
  },
  async (session, values) => {
    const given = values['ids'] as readonly string[];
    const isFiltered = filters.some((input) => values[nameOf(input)] !== undefined);
    if (given.length === 0 && !isFiltered)
      throw new UsageError(
        'no jobs selected: give job ids, --queue, --error, --fingerprint, --since or --until',
      );
    if (given.length === 1 && !isFiltered && values['preview'] !== true) {
      const call = requestOf('POST /api/v1/jobs/{id}/requeue', [reason], { ...values, id: given[0] });
      return session.show(await session.call<Acted>(call), (acted) => printActed(acted, session));
    }
    const selected = { ...values, ids: given.length === 0 ? undefined : given };
    const call = requestOf('POST /api/v1/jobs/requeue', inputs, selected);
    session.show(await session.call<Preview | Requeued>(call), (answer) =>
      answer.preview ? printPreview(answer, session) : printRequeued(answer, session),
    );
  },
);

const sampleColumns: readonly Column<Sample>[] = [
  textColumn('ID', ({ job_id }) => job_id),
  textColumn('QUEUE', ({ queue }) => queue, 10),
  ageColumn('DIED', ({ completed_at }) => completed_at),
  lastColumn('ERROR', ({ error }) => error),
];

function printPreview(answer: Preview, { print }: ApiSession): void {
  const { matched, has_more, dedupe_key_taken, sample } = answer;
  if (sample.length > 0) print.table(sampleColumns, sample);
  print.note(`${has_more ? 'more than ' : ''}${matched} jobs would be requeued; nothing was changed`);
  if (dedupe_key_taken > 0)
    print.note(`${dedupe_key_taken} of them would be skipped: other jobs have their dedupe keys`);
}

function printRequeued({ requeued, skipped, skipped_jobs, has_more }: Requeued, { print }: ApiSession): void {
  print.line(`requeued ${requeued === 1 ? '1 job' : `${requeued} jobs`}`);
  for (const { job_id, reason: why, holder_job_id } of skipped_jobs) {
    const holder = holder_job_id === null ? '' : ` (job ${holder_job_id})`;
    print.note(`skipped ${job_id}: ${escapeText(why)}${holder}`);
  }
  const unlisted = skipped - skipped_jobs.length;
  if (unlisted > 0) print.note(`skipped ${unlisted} more`);
  if (has_more) print.note('more jobs match: run the command again');
}
