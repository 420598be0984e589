import type { Command } from 'commander';

/** Ends the command's help with calls that work as they stand. */
export function withExamples(command: Command, ...examples: readonly [string, ...string[]]): Command {
  const heading = examples.length === 1 ? 'Example:' : 'Examples:';
  return command.addHelpText(
    'after',
    `\n${heading}\n${examples.map((example) => `  ${example}`).join('\n')}`,
  );
}
