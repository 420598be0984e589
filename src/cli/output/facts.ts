import { escapeLines, escapeText } from '../../kernel/escape-text.ts';
import { formatAge } from './format-age.ts';
import type { Printer } from './printer.ts';
import type { Column, Tone } from './render-table.ts';

/** One line of `show`. A null value is left out. */
export type Fact = readonly [name: string, value: string | null, tone?: Tone];

/** Prints names and values in two columns. Escapes the values. */
export function showFacts(print: Printer, facts: readonly Fact[]): void {
  const known = facts.filter(([, value]) => value !== null);
  const width = Math.max(...known.map(([name]) => name.length)) + 2;
  for (const [name, value, tone] of known) {
    const text = escapeText(value ?? '');
    print.line(
      `${print.paint('faint', name.padEnd(width))}${tone === undefined ? text : print.paint(tone, text)}`,
    );
  }
}

export function showTitle(print: Printer, title: string): void {
  print.line('');
  print.line(print.paint('faint', title));
}

/** A title and an indented text below it. */
export function showText(print: Printer, title: string, text: string): void {
  showTitle(print, title);
  for (const line of escapeLines(text)) print.line(`  ${line}`);
}

export function showJson(print: Printer, title: string, value: unknown): void {
  showText(print, title, JSON.stringify(value, null, 2));
}

/** A title and a table below it, or nothing if there are no rows. */
export function showRows<Row>(
  print: Printer,
  title: string,
  columns: readonly Column<Row>[],
  rows: readonly Row[],
): void {
  if (rows.length === 0) return;
  showTitle(print, title);
  print.table(columns, rows);
}

/** `2026-02-20T10:30:00.000+00:00 (3m ago)` */
export function instantFact(instant: string | null, now: Date): string | null {
  if (instant === null) return null;
  return Date.parse(instant) > now.getTime() ? instant : `${instant} (${formatAge(instant, now)})`;
}
