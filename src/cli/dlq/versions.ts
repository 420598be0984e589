import { escapeText } from '../../kernel/escape-text.ts';
import { ageColumn, lastColumn, numberColumn, optional, textColumn } from '../output/columns.ts';
import type { Printer } from '../output/printer.ts';
import type { Tone } from '../output/render-table.ts';
import { apiCommand, rowsAs } from '../slice/api-command.ts';
import { wholeNumber } from '../whole-number.ts';
import { messageId } from './message.ts';

type Version = Readonly<{
  version: number;
  target_topic: string;
  actor: string;
  reason: string | null;
  created_at: string;
  value_bytes: number | null;
  header_count: number;
}>;

type Part = Readonly<{ bytes: number | null; sha256: string | null; text?: string; base64?: string }>;
type Change<Of> = Readonly<{ from: Of; to: Of }>;

type Diff = Readonly<{
  from: number;
  to: number;
  key: Change<Part> | null;
  target_topic: Change<string> | null;
  headers: Readonly<{
    added: readonly Readonly<{ name: string; value: Part }>[];
    removed: readonly Readonly<{ name: string; value: Part }>[];
    changed: readonly Readonly<{ name: string } & Change<Part>>[];
    reordered: boolean;
    truncated: boolean;
  }> | null;
  value:
    | (Change<Part> &
        Readonly<{
          format: string;
          first_difference: number | null;
          lines: readonly string[];
          truncated: boolean;
          coarse: boolean;
        }>)
    | null;
}>;

const number = wholeNumber(0, 2_147_483_647);

export const versions = apiCommand({
  name: 'versions',
  description: 'list the versions of a message; 0 is the original',
  route: 'GET /api/v1/dlq/messages/{id}/versions',
  inputs: [messageId],
  examples: ['redrive dlq versions 0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31'],
  print: rowsAs<Version>(
    'versions',
    [
      numberColumn('VERSION', ({ version }) => version),
      ageColumn('AGE', ({ created_at }) => created_at),
      textColumn('ACTOR', ({ actor }) => actor, 10),
      textColumn('TARGET', ({ target_topic }) => target_topic, 9),
      textColumn('VALUE', ({ value_bytes }) => (value_bytes === null ? 'null' : `${value_bytes} bytes`)),
      optional(numberColumn('HEADERS', ({ header_count }) => header_count)),
      lastColumn('REASON', ({ reason }) => reason ?? '-'),
    ],
    'no versions',
  ),
});

export const diff = apiCommand<Diff>({
  name: 'diff',
  description: 'show what was edited in a message',
  route: 'GET /api/v1/dlq/messages/{id}/diff',
  inputs: [
    messageId,
    { flags: '--from <version>', text: 'version to compare (default: 0, the original)', parse: number },
    { flags: '--to <version>', text: 'version to compare with (default: the newest)', parse: number },
  ],
  examples: [
    'redrive dlq diff 0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31',
    'redrive dlq diff 0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31 --from 1 --to 2',
  ],
  print(found, { print }) {
    const { key, target_topic: target, headers, value } = found;
    if (key === null && target === null && headers === null && value === null)
      return print.note(`versions ${found.from} and ${found.to} are equal`);
    print.line(print.paint('strong', `--- version ${found.from}`));
    print.line(print.paint('strong', `+++ version ${found.to}`));
    if (target !== null) printChange(print, 'target topic', target.from, target.to);
    if (key !== null) printChange(print, 'key', partText(key.from), partText(key.to));
    if (headers !== null) printHeaders(print, headers);
    if (value !== null) printValue(print, value);
  },
});

function printChange(print: Printer, what: string, from: string, to: string): void {
  printLine(print, `-${what}: ${from}`);
  printLine(print, `+${what}: ${to}`);
}

function printHeaders(print: Printer, headers: NonNullable<Diff['headers']>): void {
  const { added, removed, changed, reordered, truncated } = headers;
  for (const { name, value } of removed) printLine(print, `-header ${name}: ${partText(value)}`);
  for (const { name, value } of added) printLine(print, `+header ${name}: ${partText(value)}`);
  for (const { name, from, to } of changed)
    printChange(print, `header ${name}`, partText(from), partText(to));
  if (reordered) print.note('the headers have another order');
  if (truncated) print.note('not all differences of the headers are listed');
}

function printValue(print: Printer, value: NonNullable<Diff['value']>): void {
  for (const line of value.lines) printLine(print, line);
  if (value.lines.length === 0) printChange(print, 'value', sizeText(value.from), sizeText(value.to));
  if (value.format === 'json' && value.lines.length === 0) print.note('only the spacing differs');
  if (value.format === 'too_large') print.note('the values are too large to be compared');
  if (value.coarse) print.note('the values differ in too many lines to be compared line by line');
  if (value.truncated && value.lines.length > 0) print.note('not all lines are shown whole');
}

const tones: Readonly<Record<string, Tone>> = { '-': 'bad', '+': 'good', '@': 'faint', '\\': 'faint' };

function printLine(print: Printer, line: string): void {
  const text = escapeText(line);
  const tone = tones[line.charAt(0)];
  print.line(tone === undefined ? text : print.paint(tone, text));
}

function partText(part: Part): string {
  if (part.bytes === null) return 'null';
  if (part.text !== undefined) return part.text;
  return part.base64 === undefined ? sizeText(part) : `base64 ${part.base64}`;
}

function sizeText({ bytes, sha256 }: Part): string {
  return bytes === null ? 'null' : `${bytes} bytes, SHA-256 ${sha256 ?? 'not known'}`;
}
