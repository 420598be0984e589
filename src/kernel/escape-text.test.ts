import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { escapeLines, escapeText, isHarmless } from './escape-text.ts';

test('what a terminal would act on is shown instead', () => {
  assert.equal(escapeText('\u001b[2J\u001b]0;title\u0007'), '\\u001b[2J\\u001b]0;title\\u0007');
  assert.equal(escapeText('a\r\nb\tc\u007f\u009b31m'), 'a\\r\\nb\\tc\\u007f\\u009b31m');
});

test('what would hide or reorder its surroundings is shown instead', () => {
  assert.equal(escapeText('pay \u202e001'), 'pay \\u202e001');
  assert.equal(escapeText('a\u2028b\u200bc\ufeffd'), 'a\\u2028b\\u200bc\\ufeffd');
  assert.equal(escapeText('\u{e0041}'), '\\udb40\\udc41');
  assert.equal(escapeText('half \ud800 pair'), 'half \\ud800 pair');
});

test('text of every script and emoji stay as they are', () => {
  for (const text of ['注文が失敗しました', 'Größe', 'نص', 'می‌خواهم', '👩‍💻 ok', 'C:\\temp'])
    assert.equal(escapeText(text), text);
});

test('nothing that is escaped needs escaping again', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const escaped = escapeText(text);
      assert.equal(escapeText(escaped), escaped);
    }),
  );
});

test('JSON stays the same JSON', () => {
  fc.assert(
    fc.property(fc.json({ stringUnit: 'binary' }), (json) => {
      assert.deepEqual(JSON.parse(escapeText(json)), JSON.parse(json));
    }),
  );
});

test('lines stay lines and tabs become blanks', () => {
  assert.deepEqual(escapeLines('Error: \u001b[1mx\r\n\tat main'), ['Error: \\u001b[1mx', '    at main']);
});

test('bytes are harmless when they are text without control characters', () => {
  assert.equal(isHarmless(Buffer.from('{"名前":\n\t1}\n')), true);
  assert.equal(isHarmless(Buffer.from('\u001b[31m')), false);
  assert.equal(isHarmless(Buffer.from('a\rb')), false);
  assert.equal(isHarmless(Buffer.from([0xff, 0xfe])), false);
});
