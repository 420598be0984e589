import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { cutToWidth, displayWidth } from './display-width.ts';

const widths: readonly (readonly [text: string, width: number])[] = [
  ['', 0],
  ['orders.v1', 9],
  ['注文', 4],
  ['ﾃｽﾄ', 3],
  ['ﾊﾞｸﾞ', 4],
  ['がき', 4],
  ['か\u3099', 2],
  ['한국어', 6],
  ['ＡＢ', 4],
  ['é', 1],
  ['e\u0301', 1],
  ['👍', 2],
  ['👩‍💻', 2],
  ['🇯🇵', 2],
  ['❤\ufe0f', 2],
  ['…', 1],
  ['𠮷', 2],
];

for (const [text, width] of widths)
  test(`"${text}" takes ${width} columns`, () => assert.equal(displayWidth(text), width));

test('a text that fits is not cut', () => {
  assert.equal(cutToWidth('注文.v1', 7), '注文.v1');
});

test('a cut text ends with an ellipsis and never with half a character', () => {
  assert.equal(cutToWidth('orders.v1', 6), 'order…');
  assert.equal(cutToWidth('注文が失敗', 6), '注文…');
  assert.equal(cutToWidth('a👩‍💻b', 3), 'a…');
});

test('a cut text never takes more than its columns', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 0, max: 40 }), (text, width) => {
      assert.ok(displayWidth(cutToWidth(text, width)) <= width);
    }),
  );
});
