import { Command, CommanderError } from 'commander';
import { ConfigError } from '../config/config-error.ts';
import { AppError, messageOf } from '../kernel/errors.ts';
import { addDevCommand } from './dev.ts';
import { addMigrateCommand } from './migrate.ts';
import { addServeCommand } from './serve.ts';

/** `sysexits.h` says it: something is wrong with the configuration. */
const badConfig = 78;

/** Runs one command and answers its exit code; whatever ends it is said once, in words, on standard error. */
export async function runCli(args: readonly string[]): Promise<number> {
  const program = new Command('redrive')
    .description('Stores what failed, retries it within bounds, and lets a person repair and re-drive it.')
    .showHelpAfterError()
    .exitOverride();
  addServeCommand(program);
  addDevCommand(program);
  addMigrateCommand(program);
  try {
    await program.parseAsync(args, { from: 'user' });
    return Number(process.exitCode ?? 0);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode;
    if (error instanceof ConfigError) {
      process.stderr.write(`${error.message}\n`);
      return badConfig;
    }
    const code = error instanceof AppError ? ` (${error.code})` : '';
    process.stderr.write(`redrive: ${messageOf(error)}${code}\n`);
    return 1;
  }
}
