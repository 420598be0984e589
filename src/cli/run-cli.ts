import { Command } from 'commander';
import { codeOf } from '../kernel/errors.ts';
import { escapeLines } from '../kernel/escape-text.ts';
import { apiKeyCommands } from './access/api-keys.ts';
import { addLoginCommand } from './access/login.ts';
import { addLogoutCommand } from './access/logout.ts';
import { sessionCommands } from './access/sessions.ts';
import { whoami } from './access/whoami.ts';
import { auditCommands } from './audit/audit.ts';
import { find } from './find.ts';
import { addCompletionCommand } from './completion/completion.ts';
import { addDevCommand } from './dev.ts';
import { dlqCommands } from './dlq/dlq.ts';
import { addDoctorCommand } from './doctor/doctor.ts';
import { withExamples } from './examples.ts';
import { exitCodeOf, exitCodes } from './exit-code.ts';
import { explainError } from './explain-error.ts';
import { exitCodesText, helpFormat } from './help.ts';
import { addKeysCommand } from './keys.ts';
import { jobsCommands } from './jobs/jobs.ts';
import { addMigrateCommand } from './migrate.ts';
import { outboxCommands } from './outbox/outbox.ts';
import { packageVersion } from './package-version.ts';
import { sagaCommands } from './saga/saga.ts';
import { addServeCommand } from './serve.ts';
import { addSlice } from './slice/add-slice.ts';
import type { Terminal } from './terminal.ts';
import { reportWrongUsage } from './wrong-usage.ts';

/** They keep running when the reader of their output ends. */
const longRunning: ReadonlySet<string> = new Set(['serve', 'dev']);

const defaultHelpWidth = 80;

/** Runs one command and returns its exit code. Errors are printed once, on standard error. */
export async function runCli(args: readonly string[], terminal: Terminal = process): Promise<number> {
  try {
    const program = createProgram(terminal);
    await program.parseAsync(untilUnknown(program, withoutHelpCommand(args)), { from: 'user' });
    return exitCodes.ok;
  } catch (error) {
    for (const line of explainError(error, asksForJson(args))) terminal.stderr.write(`${line}\n`);
    return exitCodeOf(error);
  }
}

/** `redrive help dlq list` is `redrive dlq list --help`; commander's own help command knows one level only. */
function withoutHelpCommand(args: readonly string[]): readonly string[] {
  return args[0] === 'help' ? [...args.slice(1), '--help'] : args;
}

/** Commander answers `redrive unknown --help` with the help of `redrive`; without the option it says what is wrong. */
function untilUnknown(program: Command, args: readonly string[]): readonly string[] {
  let command = program;
  for (const [i, word] of args.entries()) {
    if (word.startsWith('-') || word === 'help' || command.commands.length === 0) return args;
    const next = command.commands.find((each) => each.name() === word);
    if (next === undefined) return args.slice(0, i + 1);
    command = next;
  }
  return args;
}

export function createProgram(terminal: Terminal): Command {
  const program = new Command('redrive')
    .description('Redrive recovers failed messages, requests, jobs and sagas.')
    .version(packageVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'show help')
    .helpCommand(false)
    .configureOutput({
      // Help and the version, which are printed before any action.
      writeOut(text) {
        if (terminal.stdout === process.stdout) exitOnClosedOutput();
        terminal.stdout.write(text);
      },
      writeErr: (text) => void terminal.stderr.write(escapeLines(text).join('\n')),
      // Printed with all other errors.
      outputError: () => {},
      getOutHelpWidth: () => terminal.stdout.columns || defaultHelpWidth,
      getErrHelpWidth: () => terminal.stderr.columns || defaultHelpWidth,
    })
    .configureHelp(helpFormat)
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
  program.addHelpText('after', exitCodesText());
  program.commandsGroup('Server:');
  addServeCommand(program, terminal);
  addDevCommand(program, terminal);
  program.commandsGroup('Modules:');
  for (const slice of [dlqCommands, outboxCommands, jobsCommands, sagaCommands])
    addSlice(program, terminal, slice);
  find(program, terminal);
  program.commandsGroup('Access:');
  addSlice(program, terminal, auditCommands);
  addSlice(program, terminal, apiKeyCommands);
  addSlice(program, terminal, sessionCommands);
  addLoginCommand(program, terminal);
  addLogoutCommand(program, terminal);
  whoami(program, terminal);
  program.commandsGroup('Maintenance:');
  addMigrateCommand(program, terminal);
  addDoctorCommand(program, terminal);
  addKeysCommand(program, terminal);
  addCompletionCommand(program, terminal);
  reportWrongUsage(program);
  return program;
}

/** The command may not have been recognised, so the arguments are searched. */
function asksForJson(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end === -1 ? undefined : end).includes('--json');
}

/** `redrive dlq list | head` closes our output early, which is not an error. */
function exitOnClosedOutput(): void {
  process.stdout.once('error', (error) => {
    if (codeOf(error) === 'EPIPE') process.exit(exitCodes.ok);
    throw error;
  });
}
