import { RE2JS } from 're2js';
import { MASK, betweenMasks } from './mask.ts';
import { coverSpans } from './patterns.ts';

/** Covers the values of named fields in a text. */
export type NamedValues = (text: string) => string;

/**
 * Errors quote what they failed on. Where a text names a protected field and gives its value, as in `"password": "x"`,
 * `password=x` or `password: x`, the value is covered. The value is a quoted text, or what comes up to a blank, a comma
 * or a bracket. Null if there are no names.
 */
export function namedValuesIn(names: readonly string[]): NamedValues | null {
  const literal = [...new Set(names)].filter((name) => !name.includes('*'));
  if (literal.length === 0) return null;
  const any = literal.map((name) => RE2JS.quote(name)).join('|');
  const quote = `(?:\\\\{0,3}["'])?`;
  const value = `(?:\\\\{0,3}"[^"]*"?|'[^']*'?|[^\\s,;&"'(){}\\[\\]]+)`;
  const expression = RE2JS.compile(`(?i:${any})${quote}[ \\t]{0,8}[:=][ \\t]{0,8}(${value})`);
  const lower = literal.map((name) => name.toLowerCase());
  return (text) => {
    const searched = text.toLowerCase();
    if (!lower.some((name) => searched.includes(name))) return text;
    return betweenMasks(text, (part) => {
      const matcher = expression.matcher(part);
      const spans: [number, number][] = [];
      while (matcher.find()) spans.push([matcher.start(1), matcher.end(1)]);
      return coverSpans(part, spans, () => MASK);
    });
  };
}
