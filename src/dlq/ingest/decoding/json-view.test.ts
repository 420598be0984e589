import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { isJsonForPostgres } from './json-view.ts';

const isJson = (text: string): boolean => isJsonForPostgres(Buffer.from(text));

function parses(bytes: Buffer): boolean {
  try {
    JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes));
    return true;
  } catch {
    return false;
  }
}

const storableString = fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll('\0', ''));
const { json } = fc.letrec<{ json: unknown }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 5 },
    storableString,
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.integer(),
    fc.constantFrom(true, false, null),
    fc.array(tie('json'), { maxLength: 4 }),
    fc.dictionary(storableString, tie('json'), { maxKeys: 4, noNullPrototype: true }),
  ),
}));

test('accepts every document that JSON.stringify writes, with any indentation', () => {
  fc.assert(
    fc.property(json, fc.constantFrom('', ' ', '\t', '\r\n'), (value, indent) => {
      assert.ok(isJson(JSON.stringify(value, null, indent)));
    }),
  );
});

test('agrees with JSON.parse on texts made of JSON tokens', () => {
  const blanks = [' ', '\t', '\n', '\r', '\f', '\v', '\u00a0', '\uFEFF', '\u0001', '\u007f'];
  const tokens = String.raw`{ } [ ] , : " "a" "" \ \n \x \/ \u0041 \u00 true false null nul 0 - 1 01 . .5 e E+ 1e5 -0`;
  const strangers = "é 漢 😀 // NaN Infinity ' +1";
  const piece = fc.constantFrom(...tokens.split(' '), ...strangers.split(' '), ...blanks);
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 9 }), (pieces) => {
      const bytes = Buffer.from(pieces.join(''));
      // An exponent may become larger than we take.
      fc.pre(!/e[+-]?\d{3}/i.test(bytes.toString()));
      assert.equal(isJsonForPostgres(bytes), parses(bytes), pieces.join(''));
    }),
    { numRuns: 5000 },
  );
});

test('accepts a document with one changed byte exactly if JSON.parse does', () => {
  const plainJson = json.filter((value) => !JSON.stringify(value).includes('\\'));
  fc.assert(
    fc.property(plainJson, fc.nat(), fc.integer({ min: 0, max: 255 }), (value, place, byte) => {
      const bytes = Buffer.from(JSON.stringify(value));
      bytes[place % bytes.length] = byte;
      // An exponent may become larger than we take, and escapes have rules of their own.
      fc.pre(byte !== 0x5c && !/e[+-]?\d{3}/i.test(bytes.toString()));
      assert.equal(isJsonForPostgres(bytes), parses(bytes));
    }),
    { numRuns: 3000 },
  );
});

test('rejects a truncated document', () => {
  fc.assert(
    fc.property(fc.array(json, { minLength: 1 }), fc.nat(), (value, length) => {
      const bytes = Buffer.from(JSON.stringify(value));
      assert.ok(!isJsonForPostgres(bytes.subarray(0, length % bytes.length)));
    }),
  );
});

test('accepts only the white space of JSON, and no byte order mark', () => {
  assert.ok(isJson(' \t\r\n{ "a" : [ 1 , 2 ] }\n'));
  for (const text of ['', ' ', '\uFEFF{}', '{}\f', '\v{}', '[1\u00a0]', '{}\0'])
    assert.ok(!isJson(text), text);
});

test('rejects NUL in every spelling', () => {
  for (const text of ['"\\u0000"', '{"\\u0000":1}', '["a\\u0000b"]', '"\0"']) assert.ok(!isJson(text), text);
  for (const text of ['"\\u0001"', '"\\\\u0000"', '"u0000"']) assert.ok(isJson(text), text);
});

test('surrogate escapes are accepted only as a pair, high before low', () => {
  const pairs = String.raw`"\ud83d\ude00" "\uD83D\uDE00" "\ud83d\ude00\ud83d\ude00" "\ue000" "\ud7ff"`;
  for (const text of pairs.split(' ')) assert.ok(isJson(text), text);
  const alone = String.raw`"\ud83d" "\ude00" "\ude00\ud83d" "\ud83d\ud83d" "\ud83dx\ude00" "\ud83d\n" "\ud83d\u0041"`;
  const broken = String.raw`"\ud83d\ude0" "\ud83d\ "\ud83d\u {"\udfff":1} "\ud83d\ude00\ude00"`;
  for (const text of [...alone.split(' '), ...broken.split(' ')]) assert.ok(!isJson(text), text);
});

test('agrees with JSON.parse on escapes and surrogates', () => {
  const escapes = String.raw`\ud83d \ude00 \uDBFF \uDC00 \uD7FF \ue000 \u0000 \u0001 \u00e9 \n \" \\ \/ \u12 \a u0000 x 漢`;
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...escapes.split(' ')), { maxLength: 6 }), (pieces) => {
      const text = `"${pieces.join('')}"`;
      const expected = parses(Buffer.from(text)) && isStorable(JSON.parse(text) as string);
      assert.equal(isJson(text), expected, text);
    }),
    { numRuns: 3000 },
  );
});

const isStorable = (text: string): boolean => text.isWellFormed() && !text.includes('\0');

test('rejects invalid UTF-8 inside strings too', () => {
  for (const bytes of [[0xff], [0xc3], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0x80]])
    assert.ok(!isJsonForPostgres(Buffer.from([0x22, ...bytes, 0x22])), Buffer.from(bytes).toString('hex'));
});

test('nesting is accepted to a depth of 512', () => {
  assert.ok(isJson('['.repeat(512) + ']'.repeat(512)));
  assert.ok(!isJson('['.repeat(513) + ']'.repeat(513)));
  assert.ok(isJson('{"a":'.repeat(512) + '1' + '}'.repeat(512)));
  assert.ok(!isJson('{"a":'.repeat(513) + '1' + '}'.repeat(513)));
  assert.ok(!isJson('['.repeat(5_000_000)));
});

test('accepts numbers that PostgreSQL can store and write out in reasonable length', () => {
  const good =
    '0 -0 0.0 1e0 1E+5 1e-5 1.7976931348623157e308 5e-324 1e400 1e-400 1e0000000001 12345678901234567890.5';
  const long = ['1'.repeat(130_672), `0.${'1'.repeat(15_983)}`];
  for (const text of [...good.split(' '), ...long]) assert.ok(isJson(text), text.slice(0, 40));
  const bad = '1e401 1e-401 1e131071 1e999999999999999 00 01 - -a 1. .1 1e 1e+ +1 0x1 1_000 NaN Infinity';
  const tooLong = ['1'.repeat(130_673), `0.${'1'.repeat(15_984)}`, '1 2'];
  for (const text of [...bad.split(' '), ...tooLong]) assert.ok(!isJson(text), text.slice(0, 40));
});

test('a value larger than a response may be has no JSON view', () => {
  const quoted = Buffer.alloc(16 * 1024 * 1024 + 1, 'a');
  quoted[0] = 0x22;
  quoted[quoted.length - 1] = 0x22;
  assert.ok(!isJsonForPostgres(quoted));
  assert.ok(isJsonForPostgres(Buffer.concat([quoted.subarray(0, -2), Buffer.from('"')])));
});

test('a value whose numbers would grow to many times its size has no JSON view', () => {
  const numbers = (number: string, count: number): string => `[${`${number},`.repeat(count)}1]`;
  for (const number of ['1e400', '-1.5E+308', '1e-300', '0e-400'])
    assert.ok(!isJson(numbers(number, 10_000)), number);
  assert.ok(isJson(numbers('1e308', 100)), 'a few of them still fit into a list');
  assert.ok(isJson(numbers('1.5e3', 1_000_000)), 'they do not double the value');
  assert.ok(isJson(`{"a":"${'1e400,'.repeat(100_000)}"}`), 'they are text');
});
