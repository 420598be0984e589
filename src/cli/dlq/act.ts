import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import type { Command } from 'commander';
import { withApiOptions, type ApiArgs } from '../api/api-options.ts';
import { withExamples } from '../examples.ts';
import { SilentFailure, UsageError } from '../exit-code.ts';
import { cutToWidth } from '../output/display-width.ts';
import { escapeText } from '../output/escape-text.ts';
import type { Terminal } from '../terminal.ts';
import { callAndShow, openDlqSession, type DlqSession } from './dlq-session.ts';
import { toneOf, type Message } from './message.ts';

export function addActionCommands(dlq: Command, terminal: Terminal): void {
  withExamples(
    withApiOptions(dlq.command('dead').description('give up on a message: it is not retried any more'))
      .argument('<id>', "the message's id")
      .option('--reason <text>', 'why, for its history'),
    "redrive dlq dead 0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31 --reason 'the order was cancelled'",
  ).action((id: string, args: ApiArgs & Readonly<{ reason?: string }>) => {
    const body = args.reason === undefined ? {} : { reason: args.reason };
    return callAndShow<Message>(
      { terminal, args },
      { method: 'POST', path: ['messages', id, 'dead'], body },
      sayStatus,
    );
  });

  withExamples(
    withApiOptions(
      dlq
        .command('reopen')
        .description('make a dead, resolved or spent message PENDING, with all its retries'),
    )
      .argument('<id>', "the message's id")
      .requiredOption('--reason <text>', 'why, for its history'),
    "redrive dlq reopen 0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31 --reason 'the consumer was fixed'",
  ).action((id: string, { reason, ...args }: ApiArgs & Readonly<{ reason: string }>) =>
    callAndShow<Message>(
      { terminal, args },
      { method: 'POST', path: ['messages', id, 'reopen'], body: { reason } },
      sayStatus,
    ),
  );

  withExamples(
    withApiOptions(dlq.command('delete').description('delete a message; its history stays'))
      .argument('<id>', "the message's id")
      .option('-y, --yes', 'do not ask'),
    'redrive dlq delete 0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31 --yes',
  ).action(async (id: string, args: ApiArgs & Readonly<{ yes?: boolean }>) => {
    if (args.yes !== true) await confirmDeletion(terminal, openDlqSession(terminal, args), id);
    await callAndShow<{ message: string }>(
      { terminal, args },
      { method: 'DELETE', path: ['messages', id] },
      ({ message }, { print }) => print.line(escapeText(message)),
    );
  });
}

function sayStatus({ id, status, retry_count, max_retries }: Message, { print }: DlqSession): void {
  print.line(`${id} ${print.paint(toneOf(status), status)}, ${retry_count} of ${max_retries} retries used`);
}

/** Shows what would be lost and waits for a yes; anything else, also the end of the input, is a no. */
async function confirmDeletion(terminal: Terminal, session: DlqSession, id: string): Promise<void> {
  if (terminal.stdin.isTTY !== true)
    throw new UsageError('there is nobody to ask whether to delete it: say so with --yes');
  const { value } = await session.call<Message>({ path: ['messages', id] });
  const error = cutToWidth(escapeText(value.error_message), 60);
  session.print.note(`${value.id}  ${value.status}  ${escapeText(value.original_topic)}  ${error}`);
  const answer = await ask(terminal, 'Delete it with its payload? [y/N] ');
  if (/^y(es)?$/i.test(answer.trim())) return;
  session.print.note('nothing was deleted');
  throw new SilentFailure();
}

async function ask(terminal: Terminal, question: string): Promise<string> {
  const output = new Writable({
    write(chunk: Buffer, _encoding, done) {
      terminal.stderr.write(chunk);
      done();
    },
  });
  const reader = createInterface({ input: terminal.stdin, output });
  try {
    const ended = new Promise<string>((resolve) => reader.once('close', () => resolve('')));
    return await Promise.race([reader.question(question), ended]);
  } finally {
    reader.close();
  }
}
