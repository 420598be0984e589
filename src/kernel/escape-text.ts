import { isUtf8 } from 'node:buffer';

/**
 * Characters that a terminal acts on instead of showing them, and those that hide or reorder what stands around
 * them. The two joiners stay: words of several scripts, and emoji, need them.
 */
const unsafe = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]|(?![\u200c\u200d])\p{Cf}/gu;
const named: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

const isPlain = (text: string): boolean => /^[\x20-\x7e]*$/.test(text);

/**
 * Text from outside as one line that can do no harm to a terminal. Everything that is printed or logged goes through
 * here. The escapes are those of JSON, so that JSON stays the same JSON.
 */
export function escapeText(text: string): string {
  return isPlain(text) ? text : text.replaceAll(unsafe, escapeCharacter);
}

/** As `escapeText`, for text of several lines. */
export function escapeLines(text: string): readonly string[] {
  return text.split(/\r?\n/).map((line) => escapeText(line.replaceAll('\t', '    ')));
}

/** Whether bytes can be written to a terminal as they are: text, line ends and tabs. */
export function isHarmless(bytes: Buffer): boolean {
  if (!isUtf8(bytes)) return false;
  const shown = bytes.toString('utf8').replaceAll(/[\n\t]/g, '');
  return escapeText(shown) === shown;
}

function escapeCharacter(character: string): string {
  const name = named[character];
  if (name !== undefined) return name;
  let escaped = '';
  for (let i = 0; i < character.length; i += 1)
    escaped += `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`;
  return escaped;
}
