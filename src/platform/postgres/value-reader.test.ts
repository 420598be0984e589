import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readerOf, readTimestamp } from './value-reader.ts';

test('a time is read to the millisecond, whatever its offset, year or era', () => {
  const read: readonly (readonly [text: string, iso: string])[] = [
    ['2026-11-16 11:15:28.123456+00', '2026-11-16T11:15:28.123Z'],
    ['2026-11-16 11:15:28.1+00', '2026-11-16T11:15:28.100Z'],
    ['2026-11-16 11:15:28+00', '2026-11-16T11:15:28.000Z'],
    ['2026-11-16 11:15:28.5-03:30', '2026-11-16T14:45:28.500Z'],
    ['1890-01-01 00:00:00+00:53:28', '1889-12-31T23:06:32.000Z'],
    ['0044-03-15 12:00:00+00 BC', '-000043-03-15T12:00:00.000Z'],
    ['0099-12-31 23:59:59.999999+00', '0099-12-31T23:59:59.999Z'],
    ['12345-01-02 03:04:05+00', '+012345-01-02T03:04:05.000Z'],
  ];
  for (const [text, iso] of read) assert.deepEqual(readTimestamp(text), new Date(iso), text);
});

test('a time beyond what a Date can say is no valid Date', () => {
  assert.equal(readTimestamp('infinity'), Infinity);
  assert.equal(readTimestamp('-infinity'), -Infinity);
  assert.ok(Number.isNaN(Number(readTimestamp('294276-12-31 23:59:59.999999+00'))));
});

test('a time in another DateStyle is refused, not misread', () => {
  for (const text of [
    '16.11.2026 11:15:28.123 UTC',
    'Mon Nov 16 11:15:28 2026 UTC',
    '11/16/2026 11:15:28 UTC',
    '',
  ])
    assert.throws(() => readTimestamp(text), /DateStyle ISO/, text);
});

test('bigints stay exact, JSON is read, and a type of the server only has no reader', () => {
  assert.equal(readerOf(20)?.('9223372036854775807'), 9_223_372_036_854_775_807n);
  assert.deepEqual(readerOf(3802)?.('{"a": [1, null]}'), { a: [1, null] });
  assert.equal(readerOf(16)?.('f'), false);
  assert.equal(readerOf(17), undefined);
});
