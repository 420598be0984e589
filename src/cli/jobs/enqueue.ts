import { escapeText } from '../../kernel/escape-text.ts';
import { apiCommand } from '../slice/api-command.ts';
import { wholeNumber } from '../whole-number.ts';
import { toneOf } from './job.ts';

type Enqueued = Readonly<{ job_id: string; status: string; duplicate: boolean }>;

export const enqueue = apiCommand<Enqueued>({
  name: 'enqueue',
  description: 'add a job to a queue',
  route: 'POST /api/v1/jobs',
  inputs: [
    { flags: '--queue <name>', text: 'queue name', isRequired: true },
    { flags: '--dedupe-key <key>', text: 'at most one unfinished job of the queue has this key' },
    {
      flags: '--priority <number>',
      text: 'each step moves the job one minute ahead',
      parse: wholeNumber(0, 100),
    },
    { flags: '--run-at <time>', text: 'earliest start, in ISO 8601' },
    {
      flags: '--max-retries <number>',
      text: 'failures before dead-lettering (default: 3)',
      parse: wholeNumber(1, 1000),
    },
  ],
  json: { field: 'payload', text: "the job's payload", isRequired: true, hasFile: true },
  examples: [
    `redrive jobs enqueue --queue summarize --payload '{"article_id":"a-117"}'`,
    'redrive jobs enqueue --queue mail --payload-file mail.json --dedupe-key welcome-117 --priority 10',
  ],
  print({ job_id, status, duplicate }, { print }) {
    print.line(`${job_id} ${print.paint(toneOf({ status }), escapeText(status))}`);
    if (duplicate) print.note('already queued: an unfinished job has this dedupe key');
  },
});
