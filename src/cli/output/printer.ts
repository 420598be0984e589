import { styleText } from 'node:util';
import type { Output, Terminal } from '../terminal.ts';
import { escapeText } from './escape-text.ts';
import { renderTable, type Column } from './render-table.ts';

export type Tone = 'good' | 'bad' | 'doubtful' | 'faint' | 'strong';

const styles = { good: 'green', bad: 'red', doubtful: 'yellow', faint: 'dim', strong: 'bold' } as const;

/** What a command tells: its result on standard output, everything about it on standard error. */
export type Printer = Readonly<{
  line(text: string): void;
  /** For the person at the terminal; never a part of the result. */
  note(text: string): void;
  /** JSON as it came. Only on a terminal, what it would act on is written as the same JSON's escapes. */
  json(text: string): void;
  table<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): void;
  paint(tone: Tone, text: string): string;
}>;

export function createPrinter(terminal: Terminal): Printer {
  const { stdout, stderr } = terminal;
  const hasColours = mayColour(stdout, terminal.env);
  const line = (text: string): void => void stdout.write(`${text}\n`);
  return {
    line,
    note: (text) => void stderr.write(`${text}\n`),
    json: (text) => line(stdout.isTTY === true ? escapeText(text) : text),
    table(columns, rows) {
      const width = stdout.isTTY === true ? stdout.columns : undefined;
      for (const row of renderTable(columns, rows, width)) line(row);
    },
    paint: (tone, text) => (hasColours ? styleText(styles[tone], text, { validateStream: false }) : text),
  };
}

/** As no-color.org has it: any value but the empty one. */
function mayColour(stream: Output, env: NodeJS.ProcessEnv): boolean {
  return stream.isTTY === true && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb';
}
