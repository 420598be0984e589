import { cutToWidth, displayWidth } from './display-width.ts';
import { escapeText } from './escape-text.ts';

export type Column<Row> = Readonly<{
  title: string;
  /** As it came from outside; the table escapes it. */
  text: (row: Row) => string;
  align?: 'right';
  /** Where the terminal is narrow the column may be cut down to this; without it, it is never cut. */
  minWidth?: number;
  /** Colours a cell that is already cut and padded. */
  paint?: (cell: string, row: Row) => string;
}>;

const gap = '  ';

/** The lines of a table, its titles first. `width` is the terminal's; without one nothing is cut. */
export function renderTable<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  width?: number,
): readonly string[] {
  const cells = rows.map((row) => columns.map((column) => escapeText(column.text(row))));
  const widths = fitColumns(columns, naturalWidths(columns, cells), width);
  const titles = columns.map(({ title, align }, i) => padCell(title, widths[i] ?? 0, align));
  return [
    titles.join(gap).trimEnd(),
    ...rows.map((row, r) => {
      const line = columns.map(({ align, paint }, i) => {
        const padded = padCell(cells[r]?.[i] ?? '', widths[i] ?? 0, align);
        const isLast = i === columns.length - 1;
        const cell = isLast ? padded.trimEnd() : padded;
        return paint === undefined ? cell : paint(cell, row);
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

/** Takes from the widest of the columns that may be cut until the line fits, or until nothing is left to take. */
function fitColumns<Row>(
  columns: readonly Column<Row>[],
  natural: readonly number[],
  width: number | undefined,
): readonly number[] {
  if (width === undefined) return natural;
  const floors = columns.map(({ minWidth, title }) => Math.max(minWidth ?? Infinity, displayWidth(title)));
  const widths = natural.map((own, i) => (floors[i] === Infinity ? own : Math.min(own, width)));
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
