import { escapeText } from '../../kernel/escape-text.ts';
import { cutToWidth, displayWidth } from './display-width.ts';

export type Tone = 'good' | 'bad' | 'doubtful' | 'faint' | 'strong';

export type Column<Row> = Readonly<{
  title: string;
  /** Unescaped; the table escapes it. `now` is for ages. */
  text: (row: Row, now: Date) => string;
  align?: 'right';
  /** On a narrow terminal the column may be cut down to this width. Without it, it is never cut. */
  minWidth?: number;
  /** Left out if the terminal is too narrow for all columns; the last such column goes first. */
  isOptional?: true;
  /** Left out where nobody looks: in a pipe or a file. */
  isOnlyOnTerminals?: true;
  tone?: (row: Row) => Tone | undefined;
}>;

export type TableStyle = Readonly<{
  /** Of the terminal. Without it nothing is cut. */
  width?: number | undefined;
  paint?: (tone: Tone, cell: string) => string;
}>;

const gap = '  ';
const minBlockText = 10;

/**
 * The lines of a table, titles first. On a terminal that is too narrow it cuts columns, then leaves out optional
 * ones; if that is not enough it shows every row as a block of lines, one per column.
 */
export function renderTable<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  { width, paint = (_tone, cell) => cell }: TableStyle = {},
): readonly string[] {
  const now = new Date();
  const table = columns
    .filter(({ isOnlyOnTerminals }) => width !== undefined || isOnlyOnTerminals !== true)
    .map((column) => measure(column, rows, now));
  const shown = width === undefined ? table : leaveOut(table, width);
  if (shown === null) return renderBlocks(table, rows, { width, paint });
  const widths = fitColumns(shown, width);
  const titles = shown.map(({ column: { title, align } }, i) => padCell(title, widths[i] ?? 0, align));
  return [
    titles.join(gap).trimEnd(),
    ...rows.map((row, r) => {
      const line = shown.map(({ column: { align, tone }, cells }, i) => {
        const padded = padCell(cells[r] ?? '', widths[i] ?? 0, align);
        const cell = i === shown.length - 1 ? padded.trimEnd() : padded;
        const colour = tone?.(row);
        return colour === undefined ? cell : paint(colour, cell);
      });
      return line.join(gap).trimEnd();
    }),
  ];
}

/** A column with its escaped cells, its width, and the least width to which it may be cut. */
type Measured<Row> = Readonly<{
  column: Column<Row>;
  cells: readonly string[];
  natural: number;
  least: number;
}>;

function measure<Row>(column: Column<Row>, rows: readonly Row[], now: Date): Measured<Row> {
  const cells = rows.map((row) => escapeText(column.text(row, now)));
  const title = displayWidth(column.title);
  const natural = cells.reduce((widest, cell) => Math.max(widest, displayWidth(cell)), title);
  return { column, cells, natural, least: Math.min(natural, Math.max(column.minWidth ?? natural, title)) };
}

const lineWidth = (widths: readonly number[]): number =>
  widths.reduce((sum, own) => sum + own, gap.length * (widths.length - 1));

/** The columns that fit; null if even those that are not optional do not. */
function leaveOut<Row>(table: readonly Measured<Row>[], width: number): readonly Measured<Row>[] | null {
  if (lineWidth(table.map(({ least }) => least)) <= width) return table;
  const last = table.findLastIndex(({ column }) => column.isOptional === true);
  return last === -1 ? null : leaveOut(table.toSpliced(last, 1), width);
}

/** Narrows the widest column that can be cut, again and again, until the line fits. */
function fitColumns<Row>(shown: readonly Measured<Row>[], width: number | undefined): readonly number[] {
  if (width === undefined) return shown.map(({ natural }) => natural);
  // Wider than the terminal is no use, and would take long to narrow.
  const widths = shown.map(({ natural, least }) => Math.min(natural, Math.max(width, least)));
  for (let excess = lineWidth(widths) - width; excess > 0; excess -= 1) {
    const cuttable = widths.map((own, i) => (own > (shown[i]?.least ?? own) ? own : 0));
    const widest = cuttable.indexOf(Math.max(...cuttable));
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}

function renderBlocks<Row>(
  table: readonly Measured<Row>[],
  rows: readonly Row[],
  { width = Infinity, paint = (_tone, cell) => cell }: TableStyle,
): readonly string[] {
  const titleWidth = Math.max(...table.map(({ column }) => displayWidth(column.title)));
  const left = Math.max(width - titleWidth - gap.length, minBlockText);
  return rows.flatMap((row, r) => {
    const lines = table.map(({ column: { title, minWidth, tone }, cells }) => {
      const cell = cells[r] ?? '';
      const text = minWidth === undefined ? cell : cutToWidth(cell, left);
      const colour = tone?.(row);
      const shown = colour === undefined ? text : paint(colour, text);
      return `${title.padEnd(titleWidth)}${gap}${shown}`.trimEnd();
    });
    return r === 0 ? lines : ['', ...lines];
  });
}

function padCell(text: string, width: number, align: 'right' | undefined): string {
  const cut = cutToWidth(text, width);
  const padding = ' '.repeat(Math.max(0, width - displayWidth(cut)));
  return align === 'right' ? padding + cut : cut + padding;
}
