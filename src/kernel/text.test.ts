import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { cleanText } from './text.ts';

const anyText = fc.string({ unit: 'binary', maxLength: 60 });
const brokenText = fc
  .array(fc.oneof(fc.constantFrom('\0', '\uD83D', '\uDE00', '😀', 'é', '漢', 'a'), anyText), {
    maxLength: 20,
  })
  .map((parts) => parts.join(''));
const anyBytes = fc
  .array(
    fc.oneof(
      fc.uint8Array({ maxLength: 5 }),
      brokenText.map((text) => Buffer.from(text)),
    ),
    { maxLength: 12 },
  )
  .map((parts) => Buffer.concat(parts));

test('text without anything wrong stays as it is', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      const clean = text.replaceAll('\0', '');
      assert.equal(cleanText(clean, 10_000), clean);
      assert.equal(cleanText(Buffer.from(clean), 10_000), clean);
    }),
  );
});

test('NUL, lone surrogates and invalid UTF-8 become U+FFFD', () => {
  assert.equal(cleanText('a\0b', 100), 'a\uFFFDb');
  assert.equal(cleanText('a\uD83Db\uDE00', 100), 'a\uFFFDb\uFFFD');
  assert.equal(cleanText(Buffer.from([0x61, 0x00, 0xff, 0x62, 0xc3]), 100), 'a\uFFFD\uFFFDb\uFFFD');
  assert.equal(cleanText(Buffer.from([0xed, 0xa0, 0x80]), 100), '\uFFFD\uFFFD\uFFFD');
});

test('the cut never splits a character, nor leaves a mark where it was made', () => {
  assert.equal(cleanText('ab😀', 5), 'ab');
  assert.equal(cleanText('ab😀', 6), 'ab😀');
  assert.equal(cleanText(Buffer.from('ab😀'), 5), 'ab');
  assert.equal(cleanText('ab😀', 3), 'ab');
  assert.equal(cleanText('漢字', 4), '漢');
  assert.equal(cleanText('漢字', 0), '');
  assert.equal(cleanText(Buffer.from('😀😀'), 4), '😀');
});

test('whatever comes in, what comes out is storable and within its size', () => {
  fc.assert(
    fc.property(fc.oneof(brokenText, anyBytes), fc.nat(80), (input, maxBytes) => {
      const clean = cleanText(input, maxBytes);
      assert.ok(Buffer.byteLength(clean) <= maxBytes);
      assert.ok(clean.isWellFormed());
      assert.ok(!clean.includes('\0'));
    }),
  );
});

test('what is cut is a beginning of what would come out uncut, and no character more would fit', () => {
  fc.assert(
    fc.property(fc.oneof(brokenText, anyBytes), fc.nat(80), (input, maxBytes) => {
      const whole = cleanText(input, 1_000_000);
      const cut = cleanText(input, maxBytes);
      assert.ok(whole.startsWith(cut));
      const next = String.fromCodePoint(whole.codePointAt(cut.length) ?? 0);
      if (cut !== whole) assert.ok(Buffer.byteLength(cut + next) > maxBytes);
    }),
  );
});
