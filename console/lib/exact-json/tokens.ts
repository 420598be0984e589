/**
 * JSON as its tokens. Numbers, escapes and duplicate keys stay as they were written, because nothing is parsed into a
 * value: 2^63 keeps its digits and `1.0` its zero.
 */
export type Token = Readonly<{
  kind: 'open' | 'close' | 'comma' | 'colon' | 'string' | 'number' | 'word';
  text: string;
  at: number;
}>;

export type Syntax =
  | Readonly<{ isValid: true; tokens: readonly Token[] }>
  | Readonly<{ isValid: false; at: number; problem: JsonProblem }>;

export type JsonProblem =
  | 'empty'
  | 'unexpected'
  | 'unclosed'
  | 'wrong_escape'
  | 'control_character'
  | 'after_end';

const spacePattern = /[ \t\n\r]*/y;
const numberPattern = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const wordPattern = /true|false|null/y;
// eslint-disable-next-line no-control-regex -- JSON forbids control characters in strings.
const stringPattern = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;

/** Reads a whole text as one JSON value, without recursion, so that depth is no limit. */
export function readTokens(text: string): Syntax {
  const tokens: Token[] = [];
  const closers: string[] = [];
  let expected: Expected = 'value';
  let at = skipSpace(text, 0);
  if (at === text.length) return { isValid: false, at: 0, problem: 'empty' };
  while (at < text.length) {
    const token = readToken(text, at);
    if ('problem' in token) return { isValid: false, ...token };
    const next = step(expected, token, closers);
    if (next === null) {
      return { isValid: false, at, problem: expected === 'end' ? 'after_end' : 'unexpected' };
    }
    expected = next;
    tokens.push(token);
    at = skipSpace(text, at + token.text.length);
  }
  return expected === 'end' ? { isValid: true, tokens } : { isValid: false, at, problem: 'unclosed' };
}

type Expected = 'value' | 'value or close' | 'key' | 'key or close' | 'colon' | 'comma or close' | 'end';

function step(expected: Expected, { kind, text }: Token, closers: string[]): Expected | null {
  const isValueExpected = expected === 'value' || expected === 'value or close';
  const afterValue = (): Expected => (closers.length === 0 ? 'end' : 'comma or close');
  switch (kind) {
    case 'open':
      if (!isValueExpected) return null;
      closers.push(text === '{' ? '}' : ']');
      return text === '{' ? 'key or close' : 'value or close';
    case 'close':
      if (!expected.endsWith('close') || closers.at(-1) !== text) return null;
      if (expected === 'value or close' && text !== ']') return null;
      closers.pop();
      return afterValue();
    case 'comma':
      if (expected !== 'comma or close') return null;
      return closers.at(-1) === '}' ? 'key' : 'value';
    case 'colon':
      return expected === 'colon' ? 'value' : null;
    case 'string':
      if (expected === 'key' || expected === 'key or close') return 'colon';
      return isValueExpected ? afterValue() : null;
    case 'number':
    case 'word':
      return isValueExpected ? afterValue() : null;
  }
}

function readToken(text: string, at: number): Token | Readonly<{ at: number; problem: JsonProblem }> {
  const character = text[at] ?? '';
  if (character === '{' || character === '[') return { kind: 'open', text: character, at };
  if (character === '}' || character === ']') return { kind: 'close', text: character, at };
  if (character === ',') return { kind: 'comma', text: character, at };
  if (character === ':') return { kind: 'colon', text: character, at };
  if (character === '"') return readString(text, at);
  const number = match(numberPattern, text, at);
  if (number !== null) return { kind: 'number', text: number, at };
  const word = match(wordPattern, text, at);
  return word === null ? { at, problem: 'unexpected' } : { kind: 'word', text: word, at };
}

/** Long strings are cut by hand: a regular expression of a browser may run out of stack on them. */
function readString(text: string, at: number): Token | Readonly<{ at: number; problem: JsonProblem }> {
  const short = text.length - at < 4096 ? match(stringPattern, text, at) : null;
  if (short !== null) return { kind: 'string', text: short, at };
  for (let end = at + 1; end < text.length; end += 1) {
    const code = text.charCodeAt(end);
    if (code === 0x22) return { kind: 'string', text: text.slice(at, end + 1), at };
    if (code < 0x20) return { at: end, problem: 'control_character' };
    if (code !== 0x5c) continue;
    const escape = /["\\/bfnrt]|u[0-9a-fA-F]{4}/y;
    const found = match(escape, text, end + 1);
    if (found === null) return { at: end, problem: 'wrong_escape' };
    end += found.length;
  }
  return { at, problem: 'unclosed' };
}

function match(pattern: RegExp, text: string, at: number): string | null {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? null;
}

function skipSpace(text: string, at: number): number {
  return at + (match(spacePattern, text, at)?.length ?? 0);
}
