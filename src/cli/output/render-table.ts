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
  tone?: (row: Row) => Tone | undefined;
}>;

export type TableStyle = Readonly<{
  /** Of the terminal. Without it nothing is cut. */
  width?: number | undefined;
  paint?: (tone: Tone, cell: string) => string;
}>;

const gap = '  ';

/** The lines of a table, titles first. */
export function renderTable<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  { width, paint = (_tone, cell) => cell }: TableStyle = {},
): readonly string[] {
  const now = new Date();
  const cells = rows.map((row) => columns.map((column) => escapeText(column.text(row, now))));
  const widths = fitColumns(columns, naturalWidths(columns, cells), width);
  const titles = columns.map(({ title, align }, i) => padCell(title, widths[i] ?? 0, align));
  return [
    titles.join(gap).trimEnd(),
    ...rows.map((row, r) => {
      const line = columns.map(({ align, tone }, i) => {
        const padded = padCell(cells[r]?.[i] ?? '', widths[i] ?? 0, align);
        const cell = i === columns.length - 1 ? padded.trimEnd() : padded;
        const colour = tone?.(row);
        return colour === undefined ? cell : paint(colour, cell);
      });
      return line.join(gap).trimEnd();
    }),
  ];
}

function naturalWidths<Row>(
  columns: readonly Column<Row>[],
  cells: readonly (readonly string[])[],
): readonly number[] {
  return columns.map(({ title }, i) =>
    cells.reduce((widest, row) => Math.max(widest, displayWidth(row[i] ?? '')), displayWidth(title)),
  );
}

/** Narrows the widest cuttable column, again and again, until the line fits or no column can be cut. */
function fitColumns<Row>(
  columns: readonly Column<Row>[],
  natural: readonly number[],
  width: number | undefined,
): readonly number[] {
  if (width === undefined) return natural;
  const floors = columns.map(({ minWidth, title }) => Math.max(minWidth ?? Infinity, displayWidth(title)));
  const widths = natural.map((own, i) => Math.min(own, Math.max(width, floors[i] ?? Infinity)));
  const gaps = gap.length * (columns.length - 1);
  for (let excess = widths.reduce((sum, own) => sum + own, gaps) - width; excess > 0; excess -= 1) {
    const cuttable = widths.map((own, i) => (own > (floors[i] ?? Infinity) ? own : 0));
    const widest = Math.max(...cuttable);
    if (widest === 0) break;
    widths[cuttable.indexOf(widest)] = widest - 1;
  }
  return widths;
}

function padCell(text: string, width: number, align: 'right' | undefined): string {
  const cut = cutToWidth(text, width);
  const padding = ' '.repeat(Math.max(0, width - displayWidth(cut)));
  return align === 'right' ? padding + cut : cut + padding;
}
