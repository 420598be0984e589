import { Argument, InvalidArgumentError, Option, type Command } from 'commander';
import { nearest } from '../../kernel/nearest.ts';
import { withExamples } from '../examples.ts';
import type { ItemIds } from './item-id.ts';
import type { Route } from './request-of.ts';

/** One argument or option of a command, and the request field that it sets. */
export type Input = Readonly<{
  /** `<id>`, `[topic]`, `--reason <text>` */
  flags: string;
  text: string;
  /**
   * Query parameter or body field. By default the name in snake_case (`--dedupe-key` sets `dedupe_key`); null if
   * it is not sent. An argument that the path names (`{id}`) is not sent again.
   */
  field?: string | null;
  /** Request header, in addition to the field. */
  header?: 'idempotency-key';
  isRequired?: true;
  /** Upper and lower case are the same. */
  choices?: readonly string[];
  parse?: (text: string) => Value;
  /** It takes an id of such an item, or a unique prefix. */
  ids?: ItemIds;
  /** Options, in camelCase, that cannot be given together with this one. */
  conflicts?: readonly string[];
}>;

export type CommandDefinition = Readonly<{
  name: string;
  description: string;
  inputs?: readonly Input[];
  examples: readonly [string, ...string[]];
  /** Whose answer `--json` prints. */
  route?: Route;
  /** It only reads, and has `--watch`. */
  isWatchable?: boolean;
  /** It shows more than that it waits for the server. */
  hasOwnProgress?: true;
}>;

/** The values of all arguments and options by their names in camelCase. */
export type Values = Readonly<Record<string, Value>>;
export type Value = string | number | boolean | readonly string[] | undefined;

export function defineCommand(parent: Command, definition: CommandDefinition): Command {
  const { name, description, inputs = [], examples } = definition;
  const command = withExamples(parent.command(name).description(description), ...examples);
  for (const input of inputs)
    if (isOption(input)) command.addOption(optionOf(input));
    else command.addArgument(argumentOf(input));
  return command;
}

export function valuesOf(command: Command): Values {
  const named = command.registeredArguments.map(
    (argument, i) => [argument.name(), command.processedArgs[i] as Value] as const,
  );
  return { ...command.opts<Record<string, Value>>(), ...Object.fromEntries(named) };
}

/** Its key in `Values`. */
export function nameOf(input: Input): string {
  return isOption(input) ? optionOf(input).attributeName() : argumentOf(input).name();
}

function isOption({ flags }: Input): boolean {
  return flags.startsWith('-');
}

function optionOf({ flags, text, choices, parse, conflicts, isRequired }: Input): Option {
  const option = new Option(flags, text);
  if (choices !== undefined) option.choices(choices).argParser(choiceOf(choices));
  if (parse !== undefined) option.argParser(parse);
  if (conflicts !== undefined) option.conflicts([...conflicts]);
  return option.makeOptionMandatory(isRequired === true);
}

function argumentOf({ flags, text, choices, parse }: Input): Argument {
  const argument = new Argument(flags, text);
  if (choices !== undefined) argument.choices(choices).argParser(choiceOf(choices));
  return parse === undefined ? argument : argument.argParser(parse);
}

function choiceOf(choices: readonly string[]): (text: string) => string {
  return (text) => {
    const choice = choices.find((each) => each.toLowerCase() === text.toLowerCase());
    if (choice !== undefined) return choice;
    const meant = nearest(text, choices);
    const hint = meant.length === 0 ? '' : `Did you mean ${meant.join(' or ')}? `;
    throw new InvalidArgumentError(`${hint}Allowed choices are ${choices.join(', ')}.`);
  };
}
