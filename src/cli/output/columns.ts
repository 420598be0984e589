import { formatAge } from './format-age.ts';
import type { Column } from './render-table.ts';

/** Null is shown as `-`. With a `minWidth` the column may be cut. */
export function textColumn<Row>(
  title: string,
  value: (row: Row) => string | null | undefined,
  minWidth?: number,
): Column<Row> {
  return { title, text: (row) => value(row) ?? '-', ...(minWidth === undefined ? {} : { minWidth }) };
}

/** A longer text at the end of a line, which may be cut; null is shown as nothing. */
export function lastColumn<Row>(title: string, value: (row: Row) => string | null | undefined): Column<Row> {
  return { title, text: (row) => value(row) ?? '', minWidth: 10 };
}

export function numberColumn<Row>(title: string, value: (row: Row) => number | string | null): Column<Row> {
  return { title, text: (row) => String(value(row) ?? '-'), align: 'right' };
}

/** `3m ago` */
export function ageColumn<Row>(title: string, instant: (row: Row) => string | null): Column<Row> {
  return { title, text: (row, now) => formatAge(instant(row), now) };
}

/** Left out on a narrow terminal. */
export function optional<Row>(column: Column<Row>): Column<Row> {
  return { ...column, isOptional: true };
}
