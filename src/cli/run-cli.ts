import { Command, CommanderError } from 'commander';
import { ConfigError } from '../config/config-error.ts';
import { AppError, codeOf, messageOf } from '../kernel/errors.ts';
import { ApiError } from './api/api-error.ts';
import { addDevCommand } from './dev.ts';
import { addDlqCommand } from './dlq/dlq.ts';
import { addDoctorCommand } from './doctor/doctor.ts';
import { withExamples } from './examples.ts';
import { exitCodeOf, exitCodes, SilentFailure } from './exit-code.ts';
import { addJobsCommand } from './jobs/jobs.ts';
import { addMigrateCommand } from './migrate.ts';
import { addOutboxCommand } from './outbox/outbox.ts';
import { escapeText } from './output/escape-text.ts';
import { packageVersion } from './package-version.ts';
import { addSagaCommand } from './saga/saga.ts';
import { addServeCommand } from './serve.ts';
import type { Terminal } from './terminal.ts';

/** These outlive whoever reads their output. */
const longRunning: ReadonlySet<string> = new Set(['serve', 'dev']);

/** Runs one command and answers its exit code; whatever ends it is said once, in words, on standard error. */
export async function runCli(args: readonly string[], terminal: Terminal = process): Promise<number> {
  try {
    await createProgram(terminal).parseAsync(withoutHelpCommand(args), { from: 'user' });
    return exitCodes.ok;
  } catch (error) {
    for (const line of explain(error)) terminal.stderr.write(`${line}\n`);
    return exitCodeOf(error);
  }
}

/** `redrive help dlq list` is `redrive dlq list --help`; the library's own help command knows one level only. */
function withoutHelpCommand(args: readonly string[]): readonly string[] {
  return args[0] === 'help' ? [...args.slice(1), '--help'] : args;
}

export function createProgram(terminal: Terminal): Command {
  const program = new Command('redrive')
    .description('Stores what failed, retries it within bounds, and lets a person repair and re-drive it.')
    .version(packageVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'explain the command')
    .helpCommand(false)
    .configureOutput({
      writeOut: (text) => void terminal.stdout.write(text),
      writeErr: (text) => void terminal.stderr.write(text),
      outputError: (text, write) => write(text.replace(/^error: /, 'redrive: ')),
    })
    .exitOverride()
    .hook('preAction', (_program, command) => {
      if (terminal.stdout === process.stdout && !longRunning.has(command.name())) endQuietlyWhenNobodyReads();
    });
  withExamples(
    program,
    'redrive dev',
    'redrive serve --config config.yaml',
    'redrive dlq list --status DEAD',
    'redrive outbox list --needs-person',
    'redrive jobs dead',
  );
  program.addHelpText(
    'after',
    '\nExit codes: 0 done, 1 failed, 2 wrong usage, 69 a service cannot be reached, 78 wrong configuration.',
  );
  program.commandsGroup('Run:');
  addServeCommand(program, terminal);
  addDevCommand(program, terminal);
  program.commandsGroup('Work with it:');
  addDlqCommand(program, terminal);
  addOutboxCommand(program, terminal);
  addJobsCommand(program, terminal);
  addSagaCommand(program, terminal);
  program.commandsGroup('Look after it:');
  addMigrateCommand(program, terminal);
  addDoctorCommand(program, terminal);
  pointToHelp(program, 'redrive');
  return program;
}

/** After a wrong call, the way to the right one; the whole help would push the error off the screen. */
function pointToHelp(command: Command, path: string): void {
  command.showHelpAfterError(`${path} --help explains it.`);
  for (const child of command.commands) pointToHelp(child, `${path} ${child.name()}`);
}

function explain(error: unknown): readonly string[] {
  if (error instanceof CommanderError || error instanceof SilentFailure) return [];
  if (error instanceof ConfigError) return [error.message];
  if (error instanceof ApiError) {
    const code = error.code === undefined ? '' : ` (${escapeText(error.code)})`;
    const details = error.details.filter(({ message }) => message !== error.message);
    return [
      `redrive: ${escapeText(error.message)}${code}`,
      ...details.map(({ field, message }) => escapeText(`  ${field}: ${message}`)),
      ...(error.requestId === undefined ? [] : [`  request id: ${escapeText(error.requestId)}`]),
    ];
  }
  const code = error instanceof AppError ? ` (${error.code})` : '';
  return [`redrive: ${messageOf(error)}${code}`];
}

/** `redrive dlq list | head` closes our output early, which is no fault. */
function endQuietlyWhenNobodyReads(): void {
  process.stdout.once('error', (error) => {
    if (codeOf(error) === 'EPIPE') process.exit(exitCodes.ok);
    throw error;
  });
}
