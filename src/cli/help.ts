import { Help, type Argument, type Command, type HelpConfiguration, type Option } from 'commander';
import { exitCodeMeanings, exitCodes } from './exit-code.ts';
import { pathOf } from './wrong-usage.ts';

/** Below this width a description goes below its option instead of beside it. */
const minTextWidth = 24;
const indent = 6;

/** The form of all help texts. */
export const helpFormat: HelpConfiguration = {
  minWidthToWrap: 16,
  commandUsage: usageOf,
  optionDescription: describeOption,
  argumentDescription: describeArgument,
  formatItem(term, termWidth, description, helper) {
    const width = helper.helpWidth ?? 80;
    if (description === '' || width - termWidth - indent >= minTextWidth)
      return Help.prototype.formatItem.call(helper, term, termWidth, description, helper);
    const lines = helper.boxWrap(description, Math.max(width - indent, minTextWidth)).split('\n');
    return [`  ${term}`, ...lines.map((line) => `${' '.repeat(indent)}${line}`)].join('\n');
  },
};

/** `redrive dlq reopen --reason <text> [options] <id>` */
function usageOf(command: Command): string {
  const required = command.options.filter(({ mandatory }) => mandatory).map(({ flags }) => longFlag(flags));
  const words = command.registeredArguments.map((argument) => {
    const name = argument.variadic ? `${argument.name()}...` : argument.name();
    return argument.required ? `<${name}>` : `[${name}]`;
  });
  return [
    pathOf(command),
    ...required,
    ...(command.commands.length > 0 ? ['<command>'] : ['[options]']),
    ...words,
  ].join(' ');
}

/** `--reason <text>` of `-r, --reason <text>` */
const longFlag = (flags: string): string => flags.replace(/^-\w, /, '');

function describeOption(option: Option): string {
  const { description, mandatory, argChoices, defaultValue } = option;
  const isShown =
    defaultValue !== undefined && (option.required || option.optional) && !isEmpty(defaultValue);
  return withFacts(description, [
    mandatory ? 'required' : null,
    argChoices === undefined ? null : `one of ${argChoices.join(', ')}`,
    isShown ? `default: ${String(defaultValue)}` : null,
  ]);
}

function describeArgument({ description, argChoices }: Argument): string {
  return withFacts(description, [argChoices === undefined ? null : `one of ${argChoices.join(', ')}`]);
}

/** Facts are added in parentheses, also to those that the text ends with. */
function withFacts(text: string, facts: readonly (string | null)[]): string {
  const known = facts.filter((fact) => fact !== null);
  if (known.length === 0) return text;
  return text.endsWith(')') ? `${text.slice(0, -1)}; ${known.join('; ')})` : `${text} (${known.join('; ')})`;
}

const isEmpty = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

export function exitCodesText(): string {
  const lines = Object.entries(exitCodes).map(
    ([name, code]) => `  ${String(code).padEnd(4)}${exitCodeMeanings[name as keyof typeof exitCodes]}`,
  );
  return `\nExit codes:\n${lines.join('\n')}`;
}
