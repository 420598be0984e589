import type { Command, CommanderError } from 'commander';
import { UsageError } from './exit-code.ts';

/** Makes every command below report wrong arguments and options as a `UsageError` that says what is valid. */
export function reportWrongUsage(command: Command): void {
  command.exitOverride((error) => {
    // Help, also that of a command without arguments, has been printed.
    if (error.exitCode === 0 || error.code === 'commander.help') throw error;
    throw wrongUsage(command, error);
  });
  for (const child of command.commands) reportWrongUsage(child);
}

function wrongUsage(command: Command, { code, message }: CommanderError): UsageError {
  const said = message
    .replace(/^error: /, '')
    .replace(/\n\(Did you mean (?:one of )?(.*)\?\)$/, '; did you mean $1?');
  return new UsageError(said, {
    hints: [...validFor(command, code), `Run \`${pathOf(command)} --help\`.`],
  });
}

function validFor(command: Command, code: string): readonly string[] {
  const helper = command.createHelp();
  if (code === 'commander.unknownCommand')
    return [
      `Commands: ${helper
        .visibleCommands(command)
        .map((each) => each.name())
        .join(', ')}`,
    ];
  const usage = `Usage: ${helper.commandUsage(command)}`;
  if (code !== 'commander.unknownOption') return [usage];
  const options = helper.visibleOptions(command).map(({ long, short }) => long ?? short ?? '');
  return [usage, `Options: ${options.join(', ')}`];
}

/** `redrive dlq list` */
export function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}
