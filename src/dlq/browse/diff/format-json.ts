const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/**
 * JSON with one member per line, so that its lines can be compared. Strings and numbers are copied, not read: they keep
 * their spelling. The text must be valid JSON. Null if the result would be too long.
 */
export function formatJson(text: string, maxLength: number): string | null {
  let written = '';
  let depth = 0;
  const starts: string[] = [];
  const lineStart = (level: number): string => (starts[level] ??= `\n${'  '.repeat(level)}`);
  for (let at = skipSpace(text, 0); at < text.length; at = skipSpace(text, at)) {
    if (written.length > maxLength) return null;
    const code = text.charCodeAt(at);
    const end = endOfToken(text, at, code);
    const token = text.slice(at, end);
    at = end;
    if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      const next = skipSpace(text, at);
      if (isClose(text.charCodeAt(next))) {
        written += token + text.charAt(next);
        at = next + 1;
      } else written += token + lineStart((depth += 1));
    } else if (isClose(code)) written += lineStart((depth -= 1)) + token;
    else if (code === COLON) written += ': ';
    else written += code === COMMA ? token + lineStart(depth) : token;
  }
  return `${written}\n`;
}

function isClose(code: number): boolean {
  return code === CLOSE_OBJECT || code === CLOSE_ARRAY;
}

function endOfToken(text: string, at: number, code: number): number {
  if (code === QUOTE) return endOfString(text, at);
  if (isStructure(code)) return at + 1;
  let end = at + 1;
  while (end < text.length && !isStructure(text.charCodeAt(end)) && text.charCodeAt(end) > 0x20) end += 1;
  return end;
}

function endOfString(text: string, open: number): number {
  let at = open + 1;
  while (at < text.length && text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === BACKSLASH ? 2 : 1;
  return at + 1;
}

function isStructure(code: number): boolean {
  return code === COMMA || code === COLON || code === OPEN_ARRAY || code === OPEN_OBJECT || isClose(code);
}

function skipSpace(text: string, start: number): number {
  let at = start;
  while (at < text.length && text.charCodeAt(at) <= 0x20) at += 1;
  return at;
}
