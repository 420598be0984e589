import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeBase64, encodeBase64 } from './base64.ts';
import { decodeText } from './decode-text.ts';
import { hexLines } from './hex-lines.ts';

test('Base64 gives the same bytes back', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100_000 }), (bytes) => {
      expect(decodeBase64(encodeBase64(bytes))).toEqual(bytes);
    }),
    { numRuns: 30 },
  );
});

test('text is decoded as it was encoded, and a cut character is left out', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.nat(), (text, cut) => {
      const bytes = new TextEncoder().encode(text);
      expect(decodeText(bytes)).toEqual({ text, invalidAt: [], invalidCount: 0 });
      const start = decodeText(bytes.subarray(0, cut % (bytes.length + 1)), true);
      expect(start.invalidCount).toBe(0);
      expect(text.startsWith(start.text)).toBe(true);
    }),
  );
});

test('bytes that are no UTF-8 are marked where they are', () => {
  const bytes = Uint8Array.from([0x61, 0xff, 0xc3, 0xa9, 0xed, 0xa0, 0x80, 0x62]);
  expect(decodeText(bytes)).toEqual({
    text: 'a⟨ff⟩é⟨ed⟩⟨a0⟩⟨80⟩b',
    invalidAt: [1, 4, 5, 6],
    invalidCount: 4,
  });
});

test('marks exactly what a strict decoder refuses', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 12 }), (bytes) => {
      const replaced = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
      const isClean = new TextEncoder().encode(replaced).join() === bytes.join();
      expect(decodeText(bytes).invalidCount === 0).toBe(isClean);
    }),
    { numRuns: 2000 },
  );
});

test('hexadecimal has all bytes in their order', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      const lines = hexLines(bytes);
      const hex = lines.flatMap((line) => line.hex.split(' ')).map((byte) => Number.parseInt(byte, 16));
      expect(hex).toEqual([...bytes]);
    }),
  );
  expect(hexLines(Uint8Array.from([0x41, 0x00]))).toEqual([{ offset: '0000', hex: '41 00', text: 'A·' }]);
});
