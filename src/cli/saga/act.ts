import { Option, type Command } from 'commander';
import { withApiOptions, type ApiArgs } from '../api/api-options.ts';
import { openApiSession, type ApiSession } from '../api/api-session.ts';
import { withExamples } from '../examples.ts';
import { parseJson } from '../json-input.ts';
import { escapeText } from '../output/escape-text.ts';
import type { Terminal } from '../terminal.ts';
import { toneOf } from './saga-answer.ts';

type AbortArgs = ApiArgs & Readonly<{ reason?: string }>;
type StepArgs = ApiArgs & Readonly<{ reason: string; outcome?: string; output?: string }>;
type Acted = Readonly<{ saga_id: string; status: string; message: string }>;

const exampleId = '1e0b9c5c-6f0e-4b5e-9a53-0c8b7f6f3d11';

export function addActionCommands(saga: Command, terminal: Terminal): void {
  addAbort('cancel', 'undo everything that was done; ends as CANCELLED');
  addAbort('compensate', 'undo everything that was done; ends as FAILED');
  addStepAction('retry', 'try the step at which a saga is stuck again, with a new budget');
  addStepAction('skip', 'go on without the step at which a saga is stuck');
  addStepAction('resolve', 'say what has become of the step at which a saga is stuck')
    .addOption(
      new Option('--outcome <outcome>', 'of an action; an undo that is resolved is done').choices([
        'done',
        'not_done',
      ]),
    )
    .option('--output <json>', 'with --outcome done: what the step would have answered');

  function addAbort(name: 'cancel' | 'compensate', description: string): void {
    withExamples(
      withApiOptions(saga.command(name).description(description))
        .argument('<id>', "the saga's id")
        .option('--reason <text>', 'why, for its history'),
      `redrive saga ${name} ${exampleId} --reason 'the customer has called'`,
    ).action(async (id: string, { reason, ...args }: AbortArgs) => {
      const session = openApiSession(terminal, args, 'sagas');
      await act(session, [id, name], JSON.stringify({ reason }));
    });
  }

  function addStepAction(name: 'retry' | 'skip' | 'resolve', description: string): Command {
    return withExamples(
      withApiOptions(saga.command(name).description(description))
        .argument('<id>', "the saga's id")
        .argument('<step>', "the step's name")
        .requiredOption('--reason <text>', 'why, for its history'),
      `redrive saga ${name} ${exampleId} charge --reason 'looked at the books'`,
    ).action(async (id: string, step: string, args: StepArgs) => {
      const body = bodyOf(args);
      const session = openApiSession(terminal, args, 'sagas');
      await act(session, [id, 'steps', step, name], body);
    });
  }
}

/** The output stands in it as it was given, so that numbers keep their digits. */
function bodyOf({ reason, outcome, output }: StepArgs): string {
  const fields = JSON.stringify({ reason, outcome });
  if (output === undefined) return fields;
  parseJson(output, '--output');
  return `${fields.slice(0, -1)},"output":${output}}`;
}

async function act(session: ApiSession, path: readonly string[], body: string): Promise<void> {
  const { print } = session;
  const answer = await session.call<Acted>({ method: 'POST', path, body });
  session.show(answer, ({ saga_id, status, message }) => {
    print.line(`${saga_id} ${print.paint(toneOf(status), escapeText(status))}`);
    print.note(escapeText(message));
  });
}
