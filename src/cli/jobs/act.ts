import type { Command } from 'commander';
import { withApiOptions, type ApiArgs } from '../api/api-options.ts';
import { openApiSession, type ApiSession } from '../api/api-session.ts';
import { withExamples } from '../examples.ts';
import { UsageError } from '../exit-code.ts';
import { escapeText } from '../output/escape-text.ts';
import { formatAge } from '../output/format-age.ts';
import type { Column } from '../output/render-table.ts';
import type { Terminal } from '../terminal.ts';
import { wholeNumber } from '../whole-number.ts';
import { toneOf } from './job.ts';

type ActArgs = ApiArgs & Readonly<{ reason?: string }>;
type RequeueArgs = ActArgs &
  Readonly<{
    queue?: string;
    error?: string;
    from?: string;
    to?: string;
    limit?: number;
    preview?: boolean;
  }>;
type Acted = Readonly<{ job_id: string; status: string }>;
type Sample = Readonly<{ job_id: string; queue: string; error: string | null; completed_at: string | null }>;
type Requeued =
  | Readonly<{
      preview: false;
      requeued: number;
      skipped: number;
      skipped_jobs: readonly Readonly<{ job_id: string; reason: string; holder_job_id: string | null }>[];
      has_more: boolean;
    }>
  | Readonly<{
      preview: true;
      matched: number;
      has_more: boolean;
      dedupe_key_taken: number;
      sample: readonly Sample[];
    }>;

export function addActionCommands(jobs: Command, terminal: Terminal): void {
  withExamples(
    withReason(jobs.command('requeue').description('run dead jobs again, with a new budget'))
      .argument('[ids...]', 'which ones; or choose by the options')
      .option('--queue <name>', 'all dead ones of this queue')
      .option('--error <text>', 'all whose error begins like this')
      .option('--from <time>', 'all made at this time or later, in ISO 8601')
      .option('--to <time>', 'all made before this time, in ISO 8601')
      .option('--limit <number>', 'at most so many', wholeNumber(1, 10_000))
      .option('--preview', 'only say what would be requeued'),
    "redrive jobs requeue 01a1dfae-c3a5-7000-8007-f35eedc32390 --reason 'the summariser is back'",
    "redrive jobs requeue --queue summarize --error 'timeout:' --preview",
  ).action((ids: readonly string[], args: RequeueArgs) => requeue(terminal, ids, args));

  addDecision('discard', 'leave a dead job as it is: somebody has seen it', "'the article is gone'");
  addDecision('cancel', 'end a job that is not over; a running worker is told', "'sent by mistake'");

  function addDecision(name: 'discard' | 'cancel', description: string, reason: string): void {
    withExamples(
      withReason(jobs.command(name).description(description)).argument('<id>', "the job's id"),
      `redrive jobs ${name} 01a1dfae-c3a5-7000-8007-f35eedc32390 --reason ${reason}`,
    ).action(async (id: string, args: ActArgs) => {
      await act(openApiSession(terminal, args, 'jobs'), name, { id, reason: args.reason });
    });
  }
}

function withReason(command: Command): Command {
  return withApiOptions(command).option('--reason <text>', 'why, for its history');
}

async function act(
  session: ApiSession,
  name: 'requeue' | 'discard' | 'cancel',
  { id, reason }: Readonly<{ id: string; reason: string | undefined }>,
): Promise<void> {
  const { print } = session;
  const answer = await session.call<Acted>({ method: 'POST', path: [id, name], body: { reason } });
  session.show(answer, ({ job_id, status }) =>
    print.line(`${job_id} ${print.paint(toneOf(status), escapeText(status))}`),
  );
}

async function requeue(terminal: Terminal, ids: readonly string[], args: RequeueArgs): Promise<void> {
  const { queue, error, from, to, limit, preview, reason } = args;
  const isByFilter = [queue, error, from, to].some((each) => each !== undefined);
  if (ids.length === 0 && !isByFilter)
    throw new UsageError('which jobs: give their ids, or --queue, --error, --from or --to');
  const session = openApiSession(terminal, args, 'jobs');
  const [id] = ids;
  if (id !== undefined && ids.length === 1 && !isByFilter && preview !== true)
    return act(session, 'requeue', { id, reason });
  const answer = await session.call<Requeued>({
    method: 'POST',
    path: ['requeue'],
    body: {
      queue,
      error,
      created_from: from,
      created_to: to,
      ...(ids.length === 0 ? {} : { job_ids: ids }),
      limit,
      preview,
      reason,
    },
  });
  session.show(answer, (requeued) => showRequeued(session, requeued));
}

function showRequeued({ print, now }: ApiSession, requeued: Requeued): void {
  if (requeued.preview) {
    const { matched, has_more, dedupe_key_taken, sample } = requeued;
    const columns: readonly Column<Sample>[] = [
      { title: 'ID', text: ({ job_id }) => job_id },
      { title: 'QUEUE', text: ({ queue }) => queue, minWidth: 10 },
      {
        title: 'DIED',
        text: ({ completed_at }) => (completed_at === null ? '-' : formatAge(completed_at, now)),
      },
      { title: 'ERROR', text: ({ error }) => error ?? '', minWidth: 12 },
    ];
    if (sample.length > 0) print.table(columns, sample);
    print.note(`${has_more ? 'more than ' : ''}${matched} jobs would be requeued; nothing was changed`);
    if (dedupe_key_taken > 0)
      print.note(`${dedupe_key_taken} of them would be skipped: their keys are taken`);
    return;
  }
  print.line(`${requeued.requeued} jobs requeued`);
  for (const { job_id, reason, holder_job_id } of requeued.skipped_jobs)
    print.note(
      `skipped ${job_id}: ${escapeText(reason)}${holder_job_id === null ? '' : `, held by ${holder_job_id}`}`,
    );
  const unlisted = requeued.skipped - requeued.skipped_jobs.length;
  if (unlisted > 0) print.note(`skipped ${unlisted} more`);
  if (requeued.has_more) print.note('more match: do it again');
}
