import type { Command } from 'commander';
import { pathOf } from '../../src/cli/wrong-usage.ts';

/** The commands that do something, and words with which each can be called. */
export function leavesOf(command: Command): readonly Command[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf);
}

export function hasOption(command: Command, option: string): boolean {
  return command.options.some(({ long }) => long === option);
}

const uuid = '0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31';
const samples: Readonly<Record<string, string>> = {
  id: uuid,
  ids: uuid,
  partition: '0',
  rate: '50',
  url: 'http://127.0.0.1:1',
};

/** What the help alone does not tell to be needed. */
const more: Readonly<Record<string, readonly string[]>> = {
  'redrive dlq delete': ['--yes'],
  'redrive dlq erase': ['--key', 'customer-17', '--yes'],
  'redrive dlq retry-all': ['--yes'],
  'redrive dlq reveal': ['--reason', 'why'],
  'redrive jobs reveal': ['--reason', 'why'],
  'redrive outbox reveal': ['--reason', 'why'],
  'redrive saga reveal': ['--reason', 'why'],
  'redrive dlq seek': ['--earliest'],
  'redrive dlq redrive canary': ['--none'],
  'redrive outbox add': ['--request', '{}'],
  'redrive outbox supersede': ['--request', '{}'],
  'redrive jobs enqueue': ['--payload', '{}'],
  'redrive saga retry-all': ['--reason', 'why', '--yes'],
  'redrive saga probe': ['--body', '{}'],
  'redrive migrate down': ['--yes'],
};

/** The command with a value for everything that is required; `file` is a workflow. */
export function wordsOf(command: Command, file: string): readonly string[] {
  const path = pathOf(command);
  const isOrder = path.startsWith('redrive outbox');
  const sampleOf = (name: string, choices?: readonly string[]): string => {
    if (name === 'file') return file;
    return isOrder && name === 'id' ? '1042' : (choices?.[0] ?? samples[name] ?? 'orders.v1');
  };
  const given = command.options
    .filter(({ mandatory }) => mandatory)
    .flatMap(({ long, argChoices }) => [long ?? '', long === '--to' ? '0' : sampleOf('', argChoices)]);
  const args = command.registeredArguments
    .filter((argument) => argument.required || argument.name() === 'ids')
    .map((argument) => sampleOf(argument.name(), argument.argChoices));
  return [...path.split(' ').slice(1), ...args, ...given, ...(more[path] ?? [])];
}
