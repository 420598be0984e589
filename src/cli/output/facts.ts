import { escapeText } from './escape-text.ts';
import { formatAge } from './format-age.ts';
import type { Printer, Tone } from './printer.ts';

/** One line of what is known about a thing; null where there is nothing to say. */
export type Fact = readonly [name: string, value: string | null, tone?: Tone];

/** The facts that there are, their names in a column. Values may come from outside. */
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

/** JSON as it is stored, on lines of its own. */
export function showJson(print: Printer, title: string, value: unknown): void {
  showTitle(print, title);
  for (const line of JSON.stringify(value, null, 2).split('\n')) print.line(`  ${escapeText(line)}`);
}

/** `2026-02-20T10:30:00.000+00:00 (3m ago)` */
export function instantFact(instant: string | null, now: Date): string | null {
  if (instant === null) return null;
  return Date.parse(instant) > now.getTime() ? instant : `${instant} (${formatAge(instant, now)})`;
}
