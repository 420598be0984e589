/** From the first character of a match to the one behind its last. */
export type Span = readonly [start: number, end: number];

const fewest = 13;
const most = 19;

/**
 * Numbers of payment cards: 13 to 19 digits with a valid check digit, in one group or in groups that a space or a
 * hyphen separates. Other numbers before and behind it do not hide one: every sequence of whole groups is looked at,
 * and every part of a group that is longer than a number can be. One in ten other numbers has a valid check digit too.
 */
export function cardNumbersIn(text: string): readonly Span[] {
  const spans: Span[] = [];
  for (const { 0: run, index } of text.matchAll(/\d+(?:[ -]\d+)*/g)) {
    if (run.length < fewest) continue;
    const groups = [...run.matchAll(/\d+/g)].map((group) => ({ digits: group[0], at: index + group.index }));
    for (let first = 0; first < groups.length;) {
      const last = endOfNumber(groups, first);
      const [from, to] = [groups[first], groups[last]];
      if (from !== undefined && to !== undefined) spans.push([from.at, to.at + to.digits.length]);
      first = Math.max(last, first) + 1;
    }
  }
  return spans;
}

type Group = Readonly<{ digits: string; at: number }>;

/** The last group of the longest number that begins with this group; -1 if none does. */
function endOfNumber(groups: readonly Group[], first: number): number {
  if ((groups[first]?.digits.length ?? 0) > most) return hasNumber(groups[first]?.digits ?? '') ? first : -1;
  let digits = '';
  let found = -1;
  for (let last = first; last < groups.length && digits.length < most; last += 1) {
    digits += groups[last]?.digits ?? '';
    if (digits.length >= fewest && digits.length <= most && isNumber(digits, 0, digits.length)) found = last;
  }
  return found;
}

/** Whether a part of the digits is a number. */
function hasNumber(digits: string): boolean {
  for (let from = 0; from + fewest <= digits.length; from += 1)
    for (let to = from + fewest; to <= Math.min(from + most, digits.length); to += 1)
      if (isNumber(digits, from, to)) return true;
  return false;
}

/** The check of Luhn. */
function isNumber(digits: string, from: number, to: number): boolean {
  let sum = 0;
  for (let at = to - 1; at >= from; at -= 1) {
    const digit = digits.charCodeAt(at) - 0x30;
    const value = (to - 1 - at) % 2 === 1 ? digit * 2 : digit;
    sum += value > 9 ? value - 9 : value;
  }
  return sum % 10 === 0;
}
