/** Whether messages can be published to a topic of this name. Names that begin with `__` are internal to the broker. */
export function isLegalTopic(name: string): boolean {
  return /^[A-Za-z\d._-]{1,249}$/.test(name) && !name.startsWith('__') && name !== '.' && name !== '..';
}

/** Matches topics whose whole name matches one of the patterns: `*` is any number of characters, `?` is one. */
export function compileTopicGlobs(patterns: readonly string[]): (topic: string) => boolean {
  const globs = patterns.map((pattern) => pattern.split('*'));
  return (topic) => globs.some((literals) => matchLiterals(literals, topic) !== undefined);
}

/** What each `*` of the pattern matched, or undefined if the name does not match. Earlier stars match least. */
export function captureTopicGlob(pattern: string, topic: string): readonly string[] | undefined {
  return matchLiterals(pattern.split('*'), topic);
}

/**
 * The pattern is given as the literals between its stars. The first must match at the beginning, the last at the end,
 * and each of the others at the first position where it fits: this finds a match if there is one, without
 * backtracking. So the cost is at most the length of the name times that of the pattern.
 */
function matchLiterals(literals: readonly string[], topic: string): readonly string[] | undefined {
  const first = literals[0] ?? '';
  if (!fitsAt(first, topic, 0)) return undefined;
  if (literals.length === 1) return first.length === topic.length ? [] : undefined;
  const last = literals.at(-1) ?? '';
  const lastAt = topic.length - last.length;
  const captured: string[] = [];
  let at = first.length;
  for (const literal of literals.slice(1, -1)) {
    const found = firstFit(literal, topic, at);
    if (found < 0) return undefined;
    captured.push(topic.slice(at, found));
    at = found + literal.length;
  }
  if (at > lastAt || !fitsAt(last, topic, lastAt)) return undefined;
  captured.push(topic.slice(at, lastAt));
  return captured;
}

function firstFit(literal: string, topic: string, from: number): number {
  for (let at = from; at + literal.length <= topic.length; at += 1) if (fitsAt(literal, topic, at)) return at;
  return -1;
}

function fitsAt(literal: string, topic: string, at: number): boolean {
  if (at + literal.length > topic.length) return false;
  for (let index = 0; index < literal.length; index += 1)
    if (literal[index] !== '?' && literal[index] !== topic[at + index]) return false;
  return true;
}
