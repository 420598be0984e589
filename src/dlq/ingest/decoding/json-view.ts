import { isUtf8 } from 'node:buffer';
import { MAX_JSON_BYTES } from '../../../kernel/json-extent.ts';

/**
 * Whether PostgreSQL's jsonb accepts these bytes, decided in one pass without allocating: strict JSON in valid UTF-8,
 * no NUL, no lone surrogates, and within the limits of jsonb and numeric. In doubt the result is false: a value
 * without a JSON view is still stored byte for byte, but a batch that PostgreSQL rejects has to be halved.
 *
 * Every `skip…` function returns the position after what it skipped, or FAIL.
 */
export function isJsonForPostgres(bytes: Buffer): boolean {
  if (bytes.length > MAX_JSON_BYTES) return false;
  growth = 0;
  const end = skipValue(bytes, skipSpace(bytes, 0), 0);
  if (end === FAIL || growth > maxGrowth(bytes.length)) return false;
  return skipSpace(bytes, end) === bytes.length && isUtf8(bytes);
}

const FAIL = -1;

/** How much longer the skipped numbers become: PostgreSQL writes them without exponents. */
let growth = 0;

/** The JSON may be twice as long as the record, or up to the size that lists show. */
function maxGrowth(length: number): number {
  return Math.max(length, 65_536 - length);
}

const MAX_DEPTH = 512;

/**
 * More than a double can have (308, -324). PostgreSQL stores far larger ones but writes them out with all their zeros,
 * so a few bytes such as `1e131071` would make a response of many megabytes.
 */
const MAX_EXPONENT = 400;

// The digits of numeric before and after the decimal point, less what the exponent may shift.
const MAX_INTEGER_DIGITS = 131_072 - MAX_EXPONENT;
const MAX_FRACTION_DIGITS = 16_383 - MAX_EXPONENT;

const QUOTE = 0x22;
const PLUS = 0x2b;
const COMMA = 0x2c;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const LETTER = { b: 0x62, e: 0x65, f: 0x66, n: 0x6e, r: 0x72, t: 0x74, u: 0x75 } as const;

const TRUE = Buffer.from('true');
const FALSE = Buffer.from('false');
const NULL = Buffer.from('null');

function skipValue(bytes: Buffer, at: number, depth: number): number {
  if (at >= bytes.length) return FAIL;
  switch (bytes[at] ?? 0) {
    case QUOTE:
      return skipString(bytes, at);
    case OPEN_OBJECT:
      return skipObject(bytes, at, depth + 1);
    case OPEN_ARRAY:
      return skipArray(bytes, at, depth + 1);
    case LETTER.t:
      return skipWord(bytes, at, TRUE);
    case LETTER.f:
      return skipWord(bytes, at, FALSE);
    case LETTER.n:
      return skipWord(bytes, at, NULL);
    default:
      return skipNumber(bytes, at);
  }
}

function skipObject(bytes: Buffer, open: number, depth: number): number {
  if (depth > MAX_DEPTH) return FAIL;
  let at = skipSpace(bytes, open + 1);
  if (isAt(bytes, at, CLOSE_OBJECT)) return at + 1;
  for (;;) {
    if (!isAt(bytes, at, QUOTE)) return FAIL;
    at = skipString(bytes, at);
    if (at === FAIL) return FAIL;
    at = skipSpace(bytes, at);
    if (!isAt(bytes, at, COLON)) return FAIL;
    at = skipValue(bytes, skipSpace(bytes, at + 1), depth);
    if (at === FAIL) return FAIL;
    at = skipSpace(bytes, at);
    if (isAt(bytes, at, CLOSE_OBJECT)) return at + 1;
    if (!isAt(bytes, at, COMMA)) return FAIL;
    at = skipSpace(bytes, at + 1);
  }
}

function skipArray(bytes: Buffer, open: number, depth: number): number {
  if (depth > MAX_DEPTH) return FAIL;
  let at = skipSpace(bytes, open + 1);
  if (isAt(bytes, at, CLOSE_ARRAY)) return at + 1;
  for (;;) {
    at = skipValue(bytes, at, depth);
    if (at === FAIL) return FAIL;
    at = skipSpace(bytes, at);
    if (isAt(bytes, at, CLOSE_ARRAY)) return at + 1;
    if (!isAt(bytes, at, COMMA)) return FAIL;
    at = skipSpace(bytes, at + 1);
  }
}

function skipString(bytes: Buffer, open: number): number {
  let at = open + 1;
  while (at < bytes.length) {
    const byte = bytes[at] ?? 0;
    if (byte === QUOTE) return at + 1;
    if (byte < 0x20) return FAIL;
    if (byte === BACKSLASH) {
      at = skipEscape(bytes, at);
      if (at === FAIL) return FAIL;
    } else at += 1;
  }
  return FAIL;
}

function skipEscape(bytes: Buffer, backslash: number): number {
  switch (bytes[backslash + 1] ?? 0) {
    case QUOTE:
    case BACKSLASH:
    case 0x2f:
    case LETTER.b:
    case LETTER.f:
    case LETTER.n:
    case LETTER.r:
    case LETTER.t:
      return backslash + 2;
    case LETTER.u:
      return skipUnicodeEscape(bytes, backslash);
    default:
      return FAIL;
  }
}

/** A high surrogate must be followed by a low one; NUL is not allowed. */
function skipUnicodeEscape(bytes: Buffer, backslash: number): number {
  const unit = codeUnit(bytes, backslash + 2);
  if (unit <= 0 || isLowSurrogate(unit)) return FAIL;
  if (unit < 0xd800 || unit > 0xdbff) return backslash + 6;
  if (!isAt(bytes, backslash + 6, BACKSLASH) || !isAt(bytes, backslash + 7, LETTER.u)) return FAIL;
  return isLowSurrogate(codeUnit(bytes, backslash + 8)) ? backslash + 12 : FAIL;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

/** The value of the four hex digits at this position, or FAIL. */
function codeUnit(bytes: Buffer, at: number): number {
  if (at + 4 > bytes.length) return FAIL;
  let unit = 0;
  for (let index = at; index < at + 4; index += 1) {
    const digit = hexDigit(bytes[index] ?? 0);
    if (digit === FAIL) return FAIL;
    unit = unit * 16 + digit;
  }
  return unit;
}

function hexDigit(byte: number): number {
  if (byte >= ZERO && byte <= NINE) return byte - ZERO;
  const lowerCase = byte | 0x20;
  return lowerCase >= 0x61 && lowerCase <= 0x66 ? lowerCase - 0x61 + 10 : FAIL;
}

function skipNumber(bytes: Buffer, start: number): number {
  const integer = isAt(bytes, start, MINUS) ? start + 1 : start;
  let at = isAt(bytes, integer, ZERO) ? integer + 1 : skipDigits(bytes, integer);
  if (at === integer || at - integer > MAX_INTEGER_DIGITS) return FAIL;
  if (isAt(bytes, at, POINT)) {
    const fraction = at + 1;
    at = skipDigits(bytes, fraction);
    if (at === fraction || at - fraction > MAX_FRACTION_DIGITS) return FAIL;
  }
  return at < bytes.length && ((bytes[at] ?? 0) | 0x20) === LETTER.e ? skipExponent(bytes, at + 1) : at;
}

function skipExponent(bytes: Buffer, start: number): number {
  const digits = isAt(bytes, start, PLUS) || isAt(bytes, start, MINUS) ? start + 1 : start;
  const end = skipDigits(bytes, digits);
  if (end === digits) return FAIL;
  let exponent = 0;
  for (let at = digits; at < end; at += 1) {
    exponent = exponent * 10 + (bytes[at] ?? 0) - ZERO;
    if (exponent > MAX_EXPONENT) return FAIL;
  }
  growth += exponent;
  return end;
}

function skipDigits(bytes: Buffer, start: number): number {
  let at = start;
  while (at < bytes.length && isDigit(bytes[at] ?? 0)) at += 1;
  return at;
}

function isDigit(byte: number): boolean {
  return byte >= ZERO && byte <= NINE;
}

function skipWord(bytes: Buffer, start: number, word: Buffer): number {
  for (let index = 0; index < word.length; index += 1)
    if (!isAt(bytes, start + index, word[index] ?? 0)) return FAIL;
  return start + word.length;
}

function skipSpace(bytes: Buffer, start: number): number {
  let at = start;
  while (at < bytes.length && isSpace(bytes[at] ?? 0)) at += 1;
  return at;
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

function isAt(bytes: Buffer, at: number, byte: number): boolean {
  return at < bytes.length && bytes[at] === byte;
}
