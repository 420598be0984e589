import { Option, type Command } from 'commander';
import { withApiOptions, type ApiArgs } from '../api/api-options.ts';
import { openApiSession } from '../api/api-session.ts';
import { withExamples } from '../examples.ts';
import { parseJson, readText } from '../json-input.ts';
import { escapeText } from '../output/escape-text.ts';
import type { Terminal } from '../terminal.ts';
import { toneOf } from './saga-answer.ts';

type StartArgs = ApiArgs &
  Readonly<{
    payload?: string;
    payloadFile?: string;
    correlationId?: string;
    initiatedBy?: string;
    key?: string;
  }>;
type Started = Readonly<{ saga_id: string; status: string }>;

export function addStartCommand(saga: Command, terminal: Terminal): void {
  withExamples(
    withApiOptions(saga.command('start').description('start a saga'))
      .argument('<workflow>', "the workflow's name")
      .addOption(new Option('--payload <json>', 'what its steps are given').conflicts('payloadFile'))
      .option('--payload-file <file>', 'what its steps are given, from a file; - is standard input')
      .option('--correlation-id <id>', 'what it belongs to')
      .option('--initiated-by <service>', 'who wants it')
      .option('--key <key>', 'an idempotency key: with one that was used before, that saga is the answer'),
    `redrive saga start place-order --payload '{"sku":"shoe","qty":1}' --key order-117`,
    'redrive saga start place-order --payload-file order.json --correlation-id order-117',
  ).action(async (workflow: string, args: StartArgs) => {
    const payload = await payloadOf(terminal, args);
    const session = openApiSession(terminal, args, 'sagas');
    const { print } = session;
    const answer = await session.call<Started>({
      method: 'POST',
      path: [],
      body: bodyOf(workflow, args, payload),
      ...(args.key === undefined ? {} : { headers: { 'idempotency-key': args.key } }),
    });
    session.show(answer, ({ saga_id, status }) => {
      print.line(`${saga_id} ${print.paint(toneOf(status), escapeText(status))}`);
      if (answer.status === 200) print.note('this key was used before: this is the saga that it started');
    });
  });
}

async function payloadOf(terminal: Terminal, args: StartArgs): Promise<string | null> {
  if (args.payload === undefined && args.payloadFile === undefined) return null;
  const what = 'the payload';
  const options = '--payload or --payload-file';
  const payload = await readText(terminal, { text: args.payload, file: args.payloadFile, what, options });
  parseJson(payload, what);
  return payload;
}

/** The payload stands in it as it was given, so that numbers keep their digits. */
function bodyOf(workflow: string, { correlationId, initiatedBy }: StartArgs, payload: string | null): string {
  const fields = { workflow_name: workflow, correlation_id: correlationId, initiated_by: initiatedBy };
  const rest = payload === null ? '' : `,"payload":${payload}`;
  return `${JSON.stringify(fields).slice(0, -1)}${rest}}`;
}
