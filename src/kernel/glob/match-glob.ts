/** What each `*` of the pattern matched, or undefined if the text does not match. Earlier stars match least. */
export function captureGlob(pattern: string, text: string): readonly string[] | undefined {
  return matchLiterals(pattern.split('*'), text);
}

/** Matches texts that as a whole match one of the patterns: `*` is any number of characters, `?` is one. */
export function compileGlobs(patterns: readonly string[]): (text: string) => boolean {
  const globs = patterns.map((pattern) => pattern.split('*'));
  return (text) => globs.some((literals) => matchLiterals(literals, text) !== undefined);
}

/**
 * The pattern is given as the literals between its stars. The first must match at the beginning, the last at the end,
 * and each of the others at the first position where it fits: this finds a match if there is one, without
 * backtracking. So the cost is at most the length of the text times that of the pattern.
 */
function matchLiterals(literals: readonly string[], text: string): readonly string[] | undefined {
  const first = literals[0] ?? '';
  if (!fitsAt(first, text, 0)) return undefined;
  if (literals.length === 1) return first.length === text.length ? [] : undefined;
  const last = literals.at(-1) ?? '';
  const lastAt = text.length - last.length;
  const captured: string[] = [];
  let at = first.length;
  for (const literal of literals.slice(1, -1)) {
    const found = firstFit(literal, text, at);
    if (found < 0) return undefined;
    captured.push(text.slice(at, found));
    at = found + literal.length;
  }
  if (at > lastAt || !fitsAt(last, text, lastAt)) return undefined;
  captured.push(text.slice(at, lastAt));
  return captured;
}

function firstFit(literal: string, text: string, from: number): number {
  for (let at = from; at + literal.length <= text.length; at += 1) if (fitsAt(literal, text, at)) return at;
  return -1;
}

function fitsAt(literal: string, text: string, at: number): boolean {
  if (at + literal.length > text.length) return false;
  for (let index = 0; index < literal.length; index += 1)
    if (literal[index] !== '?' && literal[index] !== text[at + index]) return false;
  return true;
}
