import { Command, CommanderError } from 'commander';
import { ConfigError } from '../config/config-error.ts';
import { AppError, codeOf, messageOf } from '../kernel/errors.ts';
import { ApiError } from './api/api-error.ts';
import { addDevCommand } from './dev.ts';
import { dlqCommands } from './dlq/dlq.ts';
import { addDoctorCommand } from './doctor/doctor.ts';
import { withExamples } from './examples.ts';
import { exitCodeOf, exitCodes, SilentFailure } from './exit-code.ts';
import { jobsCommands } from './jobs/jobs.ts';
import { addMigrateCommand } from './migrate.ts';
import { outboxCommands } from './outbox/outbox.ts';
import { escapeLines, escapeText } from '../kernel/escape-text.ts';
import { packageVersion } from './package-version.ts';
import { sagaCommands } from './saga/saga.ts';
import { addServeCommand } from './serve.ts';
import { addSlice } from './slice/add-slice.ts';
import type { Terminal } from './terminal.ts';

/** They keep running when the reader of their output ends. */
const longRunning: ReadonlySet<string> = new Set(['serve', 'dev']);

/** Runs one command and returns its exit code. Errors are printed once, on standard error. */
export async function runCli(args: readonly string[], terminal: Terminal = process): Promise<number> {
  try {
    await createProgram(terminal).parseAsync(withoutHelpCommand(args), { from: 'user' });
    return exitCodes.ok;
  } catch (error) {
    for (const line of explain(error).flatMap(escapeLines)) terminal.stderr.write(`${line}\n`);
    return exitCodeOf(error);
  }
}

/** `redrive help dlq list` is `redrive dlq list --help`; commander's own help command knows one level only. */
function withoutHelpCommand(args: readonly string[]): readonly string[] {
  return args[0] === 'help' ? [...args.slice(1), '--help'] : args;
}

export function createProgram(terminal: Terminal): Command {
  const program = new Command('redrive')
    .description('Redrive recovers failed messages, requests, jobs and sagas.')
    .version(packageVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'show help')
    .helpCommand(false)
    .configureOutput({
      writeOut: (text) => void terminal.stdout.write(text),
      writeErr: (text) => void terminal.stderr.write(escapeLines(text).join('\n')),
      outputError: (text, write) => write(text.replace(/^error: /, 'redrive: ')),
    })
    .exitOverride()
    .hook('preAction', (_program, command) => {
      if (terminal.stdout === process.stdout && !longRunning.has(command.name())) exitOnClosedOutput();
    });
  withExamples(
    program,
    'redrive dev',
    'redrive serve --config config.yaml',
    'redrive dlq list --status DEAD',
    'redrive outbox list --needs-attention',
    'redrive jobs dead',
  );
  program.addHelpText(
    'after',
    '\nExit codes: 0 success, 1 failure, 2 usage error, 69 service unavailable, 78 configuration error.',
  );
  program.commandsGroup('Server:');
  addServeCommand(program, terminal);
  addDevCommand(program, terminal);
  program.commandsGroup('Modules:');
  for (const slice of [dlqCommands, outboxCommands, jobsCommands, sagaCommands])
    addSlice(program, terminal, slice);
  program.commandsGroup('Maintenance:');
  addMigrateCommand(program, terminal);
  addDoctorCommand(program, terminal);
  pointToHelp(program, 'redrive');
  return program;
}

/** After a usage error, one line instead of the whole help, which would push the error off the screen. */
function pointToHelp(command: Command, path: string): void {
  command.showHelpAfterError(`Run \`${path} --help\`.`);
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

/** `redrive dlq list | head` closes our output early, which is not an error. */
function exitOnClosedOutput(): void {
  process.stdout.once('error', (error) => {
    if (codeOf(error) === 'EPIPE') process.exit(exitCodes.ok);
    throw error;
  });
}
