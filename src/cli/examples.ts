import type { Command } from 'commander';

/** Adds examples to the end of the command's help. */
export function withExamples(command: Command, ...examples: readonly [string, ...string[]]): Command {
  const heading = examples.length === 1 ? 'Example:' : 'Examples:';
  return command.addHelpText(
    'after',
    `\n${heading}\n${examples.map((example) => `  ${example}`).join('\n')}`,
  );
}
