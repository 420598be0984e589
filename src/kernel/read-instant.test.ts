import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { formatTimestamp } from './timestamp.ts';
import { readInstant } from './read-instant.ts';

test('what the API shows as a time is read back, with its plus sign or without', () => {
  const earliest = new Date('0001-01-01T00:00:00Z');
  const latest = new Date('9999-12-31T23:59:59.999Z');
  fc.assert(
    fc.property(fc.date({ min: earliest, max: latest, noInvalidDate: true }), (instant) => {
      const text = formatTimestamp(instant);
      assert.deepEqual(readInstant(text), instant);
      assert.deepEqual(readInstant(text.replace('+', ' ')), instant);
    }),
  );
});

test('seconds and their parts may be left out, the zone may not', () => {
  assert.deepEqual(readInstant('2026-02-20T10:30Z'), new Date('2026-02-20T10:30:00Z'));
  assert.deepEqual(readInstant('2026-02-20T12:30:00.5-02:00'), new Date('2026-02-20T14:30:00.500Z'));
  assert.equal(readInstant('2026-02-20T10:30:00'), null);
});

test('days and years that there are not are none', () => {
  for (const text of [
    '2025-02-29T00:00Z',
    '2026-04-31T00:00Z',
    '0000-12-31T00:00Z',
    '0001-01-01T00:00+00:01',
  ])
    assert.equal(readInstant(text), null, text);
  assert.deepEqual(readInstant('2024-02-29T00:00Z'), new Date('2024-02-29T00:00:00Z'));
});

test('no other text is a time', () => {
  fc.assert(fc.property(fc.string(), (text) => assert.equal(readInstant(text), null)));
});
