import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatJson } from './format-json.ts';
import { readTokens } from './tokens.ts';

const textOf = (json: string) => {
  const syntax = readTokens(json);
  return syntax.isValid ? syntax.tokens.map(({ text }) => text) : null;
};

test('the tokens of a formatted text are those of the original', () => {
  const spaces = fc.array(fc.constantFrom('', ' ', '\n', '\t\r\n'), { minLength: 1 });
  fc.assert(
    fc.property(fc.jsonValue({ noUnicodeString: false }), spaces, (value, gaps) => {
      const compact = textOf(JSON.stringify(value)) ?? [];
      const spaced = compact.map((token, i) => token + (gaps[i % gaps.length] ?? '')).join('');
      const formatted = formatJson(spaced);
      expect(formatted.isJson && textOf(formatted.text)).toEqual(compact);
    }),
  );
});

test('the same texts are JSON as for JSON.parse', () => {
  const json = fc.string({
    unit: fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      '1',
      '0',
      '.',
      '-',
      'e',
      ' ',
      '\\',
      'u',
      'true',
      'a',
      '\n',
    ),
  });
  fc.assert(
    fc.property(json, (text) => {
      let isJson = true;
      try {
        JSON.parse(text);
      } catch {
        isJson = false;
      }
      expect(readTokens(text).isValid).toBe(isJson);
    }),
    { numRuns: 3000 },
  );
});

test('numbers, escapes and duplicate keys stay as they were written', () => {
  const formatted = formatJson(
    String.raw`{"a":9223372036854775808,"b":1.0,"a":1e400,"é":"\u00e9\/","c":{},"d":[]}`,
  );
  expect(formatted).toEqual({
    isJson: true,
    text: String.raw`{
  "a": 9223372036854775808,
  "b": 1.0,
  "a": 1e400,
  "é": "\u00e9\/",
  "c": {},
  "d": []
}`,
    duplicateKeys: ['a'],
  });
});

test('names the place of what is no JSON', () => {
  expect(formatJson('{\n  "a": tru\n}')).toEqual({
    isJson: false,
    line: 2,
    column: 8,
    problem: 'unexpected',
  });
  expect(formatJson('  ')).toMatchObject({ problem: 'empty' });
  expect(formatJson('[1')).toMatchObject({ problem: 'unclosed' });
  expect(formatJson('1 2')).toMatchObject({ problem: 'after_end', column: 3 });
  expect(formatJson('"a\nb"')).toMatchObject({ problem: 'control_character' });
  expect(formatJson(String.raw`"\x"`)).toMatchObject({ problem: 'wrong_escape' });
});

test('depth and length have no limit', () => {
  const deep = '['.repeat(100_000) + ']'.repeat(100_000);
  expect(readTokens(deep).isValid).toBe(true);
  expect(readTokens(`"${String.raw`\n`.repeat(1_000_000)}"`).isValid).toBe(true);
});
