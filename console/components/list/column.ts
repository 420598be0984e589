import type { ReactNode } from 'react';

/** A column of a list. */
export type Column<Row> = Readonly<{
  id: string;
  title: string;
  /** A CSS width; columns without one share the rest. */
  width?: string;
  /** The link of the row stands around this cell; exactly one column has it. */
  isPrimary?: boolean;
  isNumber?: boolean;
  render: (row: Row) => ReactNode;
  /** What the cell shows, as text: a cell whose text changes while it is on screen is marked for a moment. */
  textOf?: (row: Row) => string;
}>;

/** Where the link of a row leads. */
export type RowLink = Readonly<{ to: string; search?: Readonly<Record<string, string>> }>;
