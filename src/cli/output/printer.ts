import { inspect, styleText } from 'node:util';
import type { Output, Terminal } from '../terminal.ts';
import { escapeText } from '../../kernel/escape-text.ts';
import { renderTable, type Column, type Tone } from './render-table.ts';

const styles = { good: 'green', bad: 'red', doubtful: 'yellow', faint: 'dim', strong: 'bold' } as const;

/** The escape sequences that `paint` writes. */
const ownColours = new RegExp(
  `(\\u001b\\[(?:${Object.values(styles)
    .flatMap((style) => inspect.colors[style] ?? [])
    .join('|')})m)`,
);

/** A command's output: the result on standard output, notes on standard error. */
export type Printer = Readonly<{
  /** Escapes control characters, except for the colours of `paint`. */
  line(text: string): void;
  /** For the reader at the terminal; not part of the result. */
  note(text: string): void;
  /** The JSON unchanged. On a terminal, control characters become JSON escapes. */
  json(text: string): void;
  table<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): void;
  paint(tone: Tone, text: string): string;
}>;

export function createPrinter(terminal: Terminal): Printer {
  const { stdout, stderr } = terminal;
  const hasColours = mayColour(stdout, terminal.env);
  const paint = (tone: Tone, text: string): string =>
    hasColours ? styleText(styles[tone], text, { validateStream: false }) : text;
  const line = (text: string): void => void stdout.write(`${harmless(text, hasColours)}\n`);
  return {
    line,
    note: (text) => void stderr.write(`${harmless(text, hasColours)}\n`),
    json: (text) => void stdout.write(`${stdout.isTTY === true ? escapeText(text) : text}\n`),
    table(columns, rows) {
      // Some terminals, and most pseudo-terminals of programs, report a width of 0.
      const width = stdout.isTTY === true && stdout.columns ? stdout.columns : undefined;
      for (const row of renderTable(columns, rows, { width, paint })) line(row);
    },
    paint,
  };
}

/** Escapes what a command forgot to escape; escaped text is not changed again. */
function harmless(text: string, hasColours: boolean): string {
  if (!hasColours) return escapeText(text);
  return text
    .split(ownColours)
    .map((part, index) => (index % 2 === 1 ? part : escapeText(part)))
    .join('');
}

/**
 * By force-color.org and no-color.org, a value that is not empty forces or forbids colours. If both are set,
 * FORCE_COLOR wins, as in Node. FORCE_COLOR=0 forbids them.
 */
function mayColour(stream: Output, env: NodeJS.ProcessEnv): boolean {
  const forced = env['FORCE_COLOR'] ?? '';
  if (forced !== '') return forced !== '0' && forced !== 'false';
  return stream.isTTY === true && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb';
}
