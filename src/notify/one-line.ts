import { cleanText } from '../kernel/text.ts';

/** Line breaks, control characters and characters that change the text direction. */
const UNSAFE = /[\s\p{Cc}\p{Zl}\p{Zp}\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]+/gu;

/** External text as one readable line of limited length. */
export function oneLine(text: string, maxCharacters: number): string {
  // A character has up to four bytes, and a run of whitespace becomes one space.
  const line = cleanText(text, 8 * maxCharacters)
    .replaceAll(UNSAFE, ' ')
    .trim();
  const characters = Array.from(line);
  return characters.length <= maxCharacters ? line : `${characters.slice(0, maxCharacters - 1).join('')}…`;
}
