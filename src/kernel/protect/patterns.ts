import { RE2JS } from 're2js';
import { cardNumbersIn, type Span } from './card-numbers.ts';
import { emailAddressesIn } from './email-addresses.ts';
import { betweenMasks, type Cover } from './mask.ts';
import type { ProtectAction } from './protect-rule.ts';

/**
 * Patterns that are looked for in texts. All run in time linear to the text, whatever it says: expressions are RE2,
 * which never backtracks, and what else looks at a text passes over it once.
 */
export type Pattern = Readonly<{
  /** False if nothing in the text is one; a cheap check. */
  mayMatch: (text: string) => boolean;
  find: (text: string) => readonly Span[];
  /** What begins a match is one too, unless it is very short. So the beginning of a text can be looked at alone. */
  isBounded: boolean;
}>;

/** The patterns that every configuration has. */
export const builtInPatterns: Readonly<Record<string, Pattern>> = {
  email: { mayMatch: (text) => text.includes('@'), find: emailAddressesIn, isBounded: true },
  pan: { mayMatch: (text) => /\d(?:[ -]?\d){12}/.test(text), find: cardNumbersIn, isBounded: true },
  /** Tokens behind `Bearer`, and JSON Web Tokens anywhere. */
  bearer: {
    ...expression('(?i:bearer)[ \\t]+[\\w.~+/=-]+|eyJ[\\w-]+\\.[\\w-]+(?:\\.[\\w-]*)*', (text) =>
      /bearer|eyJ/i.test(text),
    ),
    isBounded: true,
  },
};

/** Throws if it is no expression of RE2. */
export function compilePattern(text: string): Pattern {
  return expression(text, () => true);
}

/** `mayMatch` is a cheap check by which most texts are found to have no match. */
function expression(text: string, mayMatch: (text: string) => boolean): Pattern {
  const compiled = RE2JS.compile(text);
  const find = (searched: string): readonly Span[] => {
    const spans: Span[] = [];
    const matcher = compiled.matcher(searched);
    while (matcher.find()) if (matcher.end() > matcher.start()) spans.push([matcher.start(), matcher.end()]);
    return spans;
  };
  return { mayMatch, find, isBounded: false };
}

/** The text with all matches covered. */
export function maskMatches(
  text: string,
  patterns: readonly Readonly<{ pattern: Pattern; action: ProtectAction }>[],
  cover: Cover,
): string {
  const possible = patterns.filter(({ pattern }) => pattern.mayMatch(text));
  if (possible.length === 0) return text;
  return possible.reduce(
    (shown, { pattern, action }) =>
      betweenMasks(shown, (part) => coverSpans(part, pattern.find(part), (match) => cover(match, action))),
    text,
  );
}

/** The spans do not overlap, and are in their order. */
export function coverSpans(text: string, spans: readonly Span[], cover: (match: string) => string): string {
  let shown = '';
  let from = 0;
  for (const [start, end] of spans) {
    shown += text.slice(from, start) + cover(text.slice(start, end));
    from = end;
  }
  return from === 0 ? text : shown + text.slice(from);
}
