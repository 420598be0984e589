import { cleanText } from '../kernel/text.ts';

/** Line breaks, control characters, and those that turn the direction of what stands beside them. */
const UNRULY = /[\s\p{Cc}\p{Zl}\p{Zp}\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]+/gu;

/** Text from outside, fit to stand in a line that a person reads, and no longer than that person would. */
export function oneLine(text: string, maxCharacters: number): string {
  // A character has up to four bytes, and a run of blanks becomes one.
  const line = cleanText(text, 8 * maxCharacters)
    .replaceAll(UNRULY, ' ')
    .trim();
  const characters = Array.from(line);
  return characters.length <= maxCharacters ? line : `${characters.slice(0, maxCharacters - 1).join('')}…`;
}
