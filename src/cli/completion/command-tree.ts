import type { Command, Option } from 'commander';
import { pathOf } from '../wrong-usage.ts';

/** What can stand in the place of an argument or of an option's value. */
export type Value =
  | Readonly<{ kind: 'words'; words: readonly string[] }>
  | Readonly<{ kind: 'file' | 'folder' | 'text' }>;

export type CompletedOption = Readonly<{
  /** `-c` and `--config` */
  names: readonly string[];
  text: string;
  /** Null if the next word is not its value. */
  value: Value | null;
}>;

/** A command with what can follow it. */
export type CompletedCommand = Readonly<{
  /** `redrive dlq list` */
  path: string;
  name: string;
  text: string;
  children: readonly CompletedCommand[];
  options: readonly CompletedOption[];
  /** The last one repeats if the command takes any number of them. */
  args: readonly Value[];
}>;

export function commandTree(command: Command): CompletedCommand {
  const helper = command.createHelp();
  return {
    path: pathOf(command),
    name: command.name(),
    text: command.description(),
    children: helper.visibleCommands(command).map(commandTree),
    options: helper.visibleOptions(command).map(completedOption),
    args: command.registeredArguments.map((argument) => valueOf(argument.argChoices, argument.name())),
  };
}

/** The command and all below it. */
export function allCommands(root: CompletedCommand): readonly CompletedCommand[] {
  return [root, ...root.children.flatMap(allCommands)];
}

function completedOption({ short, long, description, required, argChoices, flags }: Option): CompletedOption {
  const names = [short, long].filter((name) => name !== undefined);
  return {
    names,
    text: description,
    value: required ? valueOf(argChoices, /<([^>]+)>/.exec(flags)?.[1] ?? '') : null,
  };
}

function valueOf(choices: readonly string[] | undefined, name: string): Value {
  if (choices !== undefined) return { kind: 'words', words: choices };
  if (name === 'file' || name === 'path') return { kind: 'file' };
  return { kind: name === 'folder' ? 'folder' : 'text' };
}
