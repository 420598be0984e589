/** How deep JSON text is nested, and how long it is once its numbers are written out. */
export type JsonExtent = Readonly<{ depth: number; bytes: number }>;

/** What one JSON value may write out to, whichever way it comes in; requests over HTTP have a lower limit. */
export const MAX_JSON_BYTES = 16 * 1024 * 1024;

const QUOTE = 0x22;
const PLUS = 0x2b;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const UPPER_E = 0x45;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const LOWER_E = 0x65;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** PostgreSQL has no number with more digits; the sum stays a safe integer whatever the exponents say. */
const MAX_EXPONENT = 150_000;

/**
 * PostgreSQL writes the numbers of a jsonb without exponents: `1e308` becomes 309 digits, so that a text can grow to
 * many times its size when it is read back. This measures the text before anything parses or stores it, in one pass
 * and without allocating. The text may be invalid; it stops at `maxDepth`. The blanks that PostgreSQL adds behind
 * commas and colons are not counted.
 */
export function jsonExtent(text: string, maxDepth: number): JsonExtent {
  let depth = 0;
  let deepest = 0;
  let growth = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = closingQuote(text, at);
    else if (code === OPEN_ARRAY || code === OPEN_OBJECT) {
      depth += 1;
      if (depth > deepest) deepest = depth;
      if (deepest > maxDepth) break;
    } else if (code === CLOSE_ARRAY || code === CLOSE_OBJECT) depth -= 1;
    else if ((code === LOWER_E || code === UPPER_E) && isDigit(text.charCodeAt(at - 1)))
      growth += growthAt(text, at);
  }
  return { depth: deepest, bytes: Buffer.byteLength(text) + growth };
}

/** The end of the text where the string has none. */
function closingQuote(text: string, open: number): number {
  for (let at = open + 1; ; at += 1) {
    at = text.indexOf('"', at);
    if (at === -1) return text.length;
    let from = at;
    while (text.charCodeAt(from - 1) === BACKSLASH) from -= 1;
    if ((at - from) % 2 === 0) return at;
  }
}

/** How much longer the number with this exponent gets. It has one exponent, so no digit is looked at twice. */
function growthAt(text: string, letter: number): number {
  let start = letter;
  let point = -1;
  for (let code = text.charCodeAt(start - 1); isDigit(code) || code === POINT || code === MINUS;) {
    start -= 1;
    if (code === POINT) point = start;
    code = text.charCodeAt(start - 1);
  }
  const sign = text.charCodeAt(letter + 1);
  const digitsFrom = sign === PLUS || sign === MINUS ? letter + 2 : letter + 1;
  let end = digitsFrom;
  let exponent = 0;
  for (; isDigit(text.charCodeAt(end)); end += 1)
    exponent = Math.min(exponent * 10 + text.charCodeAt(end) - ZERO, MAX_EXPONENT);
  if (sign === MINUS) exponent = -exponent;
  const whole = (point === -1 ? letter : point) - start;
  const fraction = point === -1 ? 0 : letter - point - 1;
  const written = Math.max(whole + exponent, 1) + Math.max(fraction - exponent, 0) + 1;
  return Math.max(written - (end - start), 0);
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE;
}
