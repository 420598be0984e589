import { Option, type Command } from 'commander';
import { withApiOptions, type ApiArgs } from '../api/api-options.ts';
import { openApiSession } from '../api/api-session.ts';
import { withExamples } from '../examples.ts';
import { parseJson, readText } from '../json-input.ts';
import { escapeText } from '../output/escape-text.ts';
import type { Terminal } from '../terminal.ts';
import { wholeNumber } from '../whole-number.ts';
import { toneOf } from './job.ts';

type EnqueueArgs = ApiArgs &
  Readonly<{
    queue: string;
    payload?: string;
    payloadFile?: string;
    dedupeKey?: string;
    priority?: number;
    runAt?: string;
    maxRetries?: number;
  }>;
type Enqueued = Readonly<{ job_id: string; status: string; duplicate: boolean }>;

export function addEnqueueCommand(jobs: Command, terminal: Terminal): void {
  withExamples(
    withApiOptions(jobs.command('enqueue').description('add a job to a queue'))
      .requiredOption('--queue <name>', 'which queue')
      .addOption(new Option('--payload <json>', 'what its worker is given').conflicts('payloadFile'))
      .option('--payload-file <file>', 'what its worker is given, from a file; - is standard input')
      .option('--dedupe-key <key>', 'at most one job of the queue that is not over has it')
      .option('--priority <number>', 'each step puts it a minute ahead', wholeNumber(0, 100))
      .option('--run-at <time>', 'not before this time, in ISO 8601')
      .option('--max-retries <number>', 'at so many failures it is dead', wholeNumber(1, 1000)),
    `redrive jobs enqueue --queue summarize --payload '{"article_id":"a-117"}'`,
    'redrive jobs enqueue --queue mail --payload-file mail.json --dedupe-key welcome-117 --priority 10',
  ).action(async (args: EnqueueArgs) => {
    const payload = await readText(terminal, {
      text: args.payload,
      file: args.payloadFile,
      what: 'the payload',
      options: '--payload or --payload-file',
    });
    parseJson(payload, 'the payload');
    const session = openApiSession(terminal, args, 'jobs');
    const { print } = session;
    const answer = await session.call<Enqueued>({ method: 'POST', path: [], body: bodyOf(args, payload) });
    session.show(answer, ({ job_id, status, duplicate }) => {
      print.line(`${job_id} ${print.paint(toneOf(status), escapeText(status))}`);
      if (duplicate) print.note('a job with this dedupe key was there and is not over: this is that one');
    });
  });
}

/** The payload stands in it as it was given, so that numbers keep their digits. */
function bodyOf({ queue, dedupeKey, priority, runAt, maxRetries }: EnqueueArgs, payload: string): string {
  const fields = { queue, dedupe_key: dedupeKey, priority, run_at: runAt, max_retries: maxRetries };
  return `${JSON.stringify(fields).slice(0, -1)},"payload":${payload}}`;
}
