import type { ErrorDetail } from './errors.ts';
import { fieldPath, findUnsafeInput, MAX_DEPTH, tooDeep } from './unsafe-input.ts';

export type ExactJson = Readonly<{ ok: true; value: unknown }> | Readonly<{ ok: false; flaw: ErrorDetail }>;

/**
 * As JSON.parse, but a text whose value would not be all of what it says is refused: a key that is there twice, a
 * number that becomes another one as a double, a text that cannot be stored. So two texts of one value mean the
 * same to everybody, however they are spelt. `root` names the whole text in a flaw.
 *
 * JSON.parse itself is only asked whether it is JSON. It drops and rounds without a word, and V8 may take a key
 * with escapes for another key that it has seen before (nodejs/node#63785).
 */
export function parseExactJson(text: string, root = 'body'): ExactJson {
  try {
    JSON.parse(text);
  } catch {
    return refuse(root, 'syntax', 'must be valid JSON');
  }
  const read = readExactly(text, root);
  if (!read.ok) return read;
  const flaw = findUnsafeInput(read.value, root);
  return flaw === null ? read : { ok: false, flaw };
}

/** An object or array that is open at this place of the text. */
type Frame = {
  readonly parent: Frame | null;
  readonly depth: number;
  readonly holder: unknown[] | Record<string, unknown>;
  /** The key that awaits its value; null where a key comes next, and in an array. */
  key: string | null;
};

type Cursor = { readonly text: string; at: number };

const QUOTE = 0x22;
const PLUS = 0x2b;
const COMMA = 0x2c;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const LETTER = { E: 0x45, e: 0x65, f: 0x66, n: 0x6e, t: 0x74 } as const;

/** The text is known to be JSON. A chain of frames in place of recursion keeps depth harmless. */
function readExactly(text: string, root: string): ExactJson {
  const cursor: Cursor = { text, at: 0 };
  let frame: Frame | null = null;
  for (;;) {
    const code = skipSeparators(cursor);
    let value: unknown;
    if (code === OPEN_OBJECT || code === OPEN_ARRAY) {
      const depth: number = (frame?.depth ?? 0) + 1;
      if (depth > MAX_DEPTH) return { ok: false, flaw: tooDeep(root) };
      frame = { parent: frame, depth, holder: code === OPEN_ARRAY ? [] : {}, key: null };
      cursor.at += 1;
      continue;
    }
    if (frame !== null && (code === CLOSE_OBJECT || code === CLOSE_ARRAY)) {
      value = frame.holder;
      frame = frame.parent;
      cursor.at += 1;
    } else {
      value = readScalar(cursor, code);
      if (value === undefined) return refuse(fieldOf(frame) ?? root, 'inexact_number', INEXACT);
    }
    if (frame === null) return { ok: true, value };
    if (!put(frame, value)) return refuse(fieldOf(frame) ?? root, 'duplicate_key', 'must not be there twice');
  }
}

const INEXACT = 'must be a number that a double holds exactly, or a text';

/** Leaves the cursor at what comes after white space, commas and colons, and returns its first character. */
function skipSeparators(cursor: Cursor): number {
  let code = cursor.text.charCodeAt(cursor.at);
  while (code <= 0x20 || code === COMMA || code === COLON) code = cursor.text.charCodeAt((cursor.at += 1));
  return code;
}

/** A value, or a key in an object that awaits one; false if it has that key already. */
function put(frame: Frame, value: unknown): boolean {
  const { holder, key } = frame;
  if (Array.isArray(holder)) holder.push(value);
  else if (key === null) {
    frame.key = value as string;
    return !Object.hasOwn(holder, frame.key);
  } else {
    // An assignment would make the value of this key the object's prototype.
    if (key === '__proto__') Object.defineProperty(holder, key, { value, enumerable: true });
    else holder[key] = value;
    frame.key = null;
  }
  return true;
}

/** A string, a word or a number; undefined for a number that is not exact. */
function readScalar(cursor: Cursor, code: number): unknown {
  switch (code) {
    case QUOTE:
      return readString(cursor);
    case LETTER.t:
      cursor.at += 'true'.length;
      return true;
    case LETTER.f:
      cursor.at += 'false'.length;
      return false;
    case LETTER.n:
      cursor.at += 'null'.length;
      return null;
    default:
      return readNumber(cursor);
  }
}

function readString(cursor: Cursor): string {
  const { text, at: open } = cursor;
  let close = text.indexOf('"', open + 1);
  while (isEscaped(text, close)) close = text.indexOf('"', close + 1);
  cursor.at = close + 1;
  const inside = text.slice(open + 1, close);
  return inside.includes('\\') ? (JSON.parse(`"${inside}"`) as string) : inside;
}

/** After an odd number of backslashes: of each two, the first escapes the second. */
function isEscaped(text: string, quote: number): boolean {
  let from = quote;
  while (text.charCodeAt(from - 1) === BACKSLASH) from -= 1;
  return (quote - from) % 2 === 1;
}

function readNumber(cursor: Cursor): number | undefined {
  const { text, at: start } = cursor;
  let end = start + 1;
  while (isInNumber(text.charCodeAt(end))) end += 1;
  cursor.at = end;
  const literal = text.slice(start, end);
  const value = Number(literal);
  return isExact(literal, value) ? value : undefined;
}

/** `-`, `.`, digits, `+`, `e` and `E`; not NaN, behind the end of the text. */
function isInNumber(code: number): boolean {
  return (code >= MINUS && code <= NINE) || code === LETTER.e || code === LETTER.E || code === PLUS;
}

/** Whether the decimal value is that of the shortest form of the double. */
function isExact(literal: string, value: number): boolean {
  const shortest = String(value);
  return shortest === literal || decimalOf(shortest) === decimalOf(literal);
}

/** One text for each decimal value. The sign is left out: every number but zero keeps it, and zero has none. */
function decimalOf(literal: string): string {
  const [, whole = '', fraction = '', exponent = '0'] =
    /^-?(\d+)(?:\.(\d+))?(?:e(.+))?$/i.exec(literal) ?? [];
  const digits = whole + fraction;
  let from = 0;
  while (digits.charCodeAt(from) === ZERO) from += 1;
  let to = digits.length;
  while (to > from && digits.charCodeAt(to - 1) === ZERO) to -= 1;
  return to === from ? '0' : `${digits.slice(from, to)}e${Number(exponent) + whole.length - from}`;
}

/** Where in the text we are; null outside of any object and array. */
function fieldOf(frame: Frame | null): string | null {
  const keys: string[] = [];
  for (let at = frame; at !== null; at = at.parent)
    keys.unshift(Array.isArray(at.holder) ? String(at.holder.length) : (at.key ?? ''));
  return keys.length === 0 ? null : fieldPath(keys);
}

function refuse(field: string, reason: string, message: string): ExactJson {
  return { ok: false, flaw: { field, reason, message } };
}
