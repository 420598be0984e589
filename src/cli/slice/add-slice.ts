import type { Command } from 'commander';
import { withExamples } from '../examples.ts';
import type { Terminal } from '../terminal.ts';
import type { AddCommand } from './api-command.ts';

/** `redrive outbox` and the commands below it, grouped as its help shows them. */
export type SliceCommands = Readonly<{
  name: string;
  description: string;
  examples: readonly [string, ...string[]];
  groups: Readonly<Record<string, readonly AddCommand[]>>;
}>;

export function addSlice(program: Command, terminal: Terminal, slice: SliceCommands): void {
  const command = withExamples(program.command(slice.name).description(slice.description), ...slice.examples);
  for (const [heading, commands] of Object.entries(slice.groups)) {
    command.commandsGroup(`${heading}:`);
    for (const add of commands) add(command, terminal);
  }
}
