import type { Span } from './card-numbers.ts';

const maxLocal = 64;
/** Each repetition is bounded, and a label has no dot: so it never looks at a character often. */
const domain = /(?:[\p{L}\p{N}-]{1,63}\.){1,8}[\p{L}\p{N}-]{1,63}/uy;
const local = /[\p{L}\p{N}._%+-]/u;

/** Addresses of e-mail, found from their `@`: most texts have none, and the others few. */
export function emailAddressesIn(text: string): readonly Span[] {
  const spans: Span[] = [];
  let from = 0;
  for (let at = text.indexOf('@'); at !== -1; at = text.indexOf('@', at + 1)) {
    const start = startOfLocal(text, from, at);
    domain.lastIndex = at + 1;
    const end = start === at || !domain.test(text) ? -1 : domain.lastIndex;
    if (end === -1) continue;
    spans.push([start, end]);
    from = end;
  }
  return spans;
}

/** Letters of other planes are two units of the text. */
function startOfLocal(text: string, from: number, at: number): number {
  let start = at;
  for (let length = 0; length < maxLocal && start > from; length += 1) {
    const low = text.charCodeAt(start - 1);
    const isPair = low >= 0xdc00 && low <= 0xdfff && start - 2 >= from;
    const before = isPair ? start - 2 : start - 1;
    if (!local.test(text.slice(before, start))) break;
    start = before;
  }
  return start;
}
