/** Whether Kafka and we accept the name of a topic to publish to. Names with `__` in front are the broker's own. */
export function isLegalTopic(name: string): boolean {
  return /^[A-Za-z\d._-]{1,249}$/.test(name) && !name.startsWith('__') && name !== '.' && name !== '..';
}

/** Accepts the topics whose whole name matches any of the patterns: `*` is any run of characters, `?` is one. */
export function compileTopicGlobs(patterns: readonly string[]): (topic: string) => boolean {
  const globs = patterns.map((pattern) => pattern.split('*'));
  return (topic) => globs.some((literals) => matchLiterals(literals, topic) !== undefined);
}

/** What each `*` of the pattern caught, or undefined when the name does not match. Earlier stars catch least. */
export function captureTopicGlob(pattern: string, topic: string): readonly string[] | undefined {
  return matchLiterals(pattern.split('*'), topic);
}

/**
 * The pattern comes as the literals around its stars. The first stands at the beginning, the last at the end,
 * and each between at the first place where it fits: if there is a match at all, this finds one, and it never
 * goes back. So the cost is at most the name's length times the pattern's.
 */
function matchLiterals(literals: readonly string[], topic: string): readonly string[] | undefined {
  const first = literals[0] ?? '';
  if (!fitsAt(first, topic, 0)) return undefined;
  if (literals.length === 1) return first.length === topic.length ? [] : undefined;
  const last = literals.at(-1) ?? '';
  const lastAt = topic.length - last.length;
  const caught: string[] = [];
  let at = first.length;
  for (const literal of literals.slice(1, -1)) {
    const found = firstFit(literal, topic, at);
    if (found < 0) return undefined;
    caught.push(topic.slice(at, found));
    at = found + literal.length;
  }
  if (at > lastAt || !fitsAt(last, topic, lastAt)) return undefined;
  caught.push(topic.slice(at, lastAt));
  return caught;
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
