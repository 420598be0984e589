import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { formatContentRange, readByteRange } from './byte-range.ts';
import { HttpFault } from './errors/http-fault.ts';

test('a range is a part of the body, cut at its end', () => {
  for (const [header, start, bytes] of [
    ['bytes=0-0', 0, 1],
    ['bytes=2-4', 2, 3],
    ['bytes=2-', 2, 8],
    ['bytes=0-999', 0, 10],
    ['bytes=-3', 7, 3],
    ['bytes=-99', 0, 10],
    ['BYTES= 9-9 ', 9, 1],
  ] as const)
    assert.deepEqual(readByteRange(header, 10), { start, bytes }, header);
  assert.equal(formatContentRange({ start: 2, bytes: 3 }, 10), 'bytes 2-4/10');
});

test('no range, several ranges and what is no range mean the whole body', () => {
  for (const header of [
    undefined,
    '',
    'bytes',
    'bytes=',
    'bytes=-',
    'bytes=4-2',
    'bytes=a-b',
    'bytes=0-1,3-4',
    'lines=1-2',
    'bytes=1.5-2',
    `bytes=${'9'.repeat(400)}-`,
  ])
    assert.equal(readByteRange(header, 10), null, header);
});

test('a range behind the end is 416 with the size', () => {
  for (const [header, size] of [
    ['bytes=10-', 10],
    ['bytes=999999999999999-', 10],
    ['bytes=-0', 10],
    ['bytes=0-', 0],
    ['bytes=-5', 0],
  ] as const)
    assert.throws(
      () => readByteRange(header, size),
      (error) =>
        error instanceof HttpFault &&
        error.statusCode === 416 &&
        error.headers['content-range'] === `bytes */${size}`,
    );
});

test('whatever is asked for, the part lies within the body and is not empty', () => {
  fc.assert(
    fc.property(fc.string(), fc.nat(), fc.nat(), fc.nat(1000), (noise, a, b, size) => {
      for (const header of [noise, `bytes=${a}-${b}`, `bytes=${a}-`, `bytes=-${b}`, `bytes=${noise}`]) {
        const range = attempt(header, size);
        if (range === null) continue;
        assert.ok(range.start >= 0 && range.bytes > 0 && range.start + range.bytes <= size, header);
      }
    }),
  );
});

function attempt(header: string, size: number) {
  try {
    return readByteRange(header, size);
  } catch (error) {
    assert.ok(error instanceof HttpFault);
    return null;
  }
}
