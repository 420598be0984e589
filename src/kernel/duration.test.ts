import assert from 'node:assert/strict';
import { test } from 'node:test';

import * as fc from 'fast-check';

import { formatDuration, parseDuration } from './duration.ts';

test('a duration is the sum of its parts', () => {
  const cases = { '250ms': 250, '30s': 30_000, '5m': 300_000, '1h30m': 5_400_000, '1d1h1m1s1ms': 90_061_001 };
  for (const [text, ms] of Object.entries(cases)) assert.equal(parseDuration(text), ms, text);
});

test('what is no duration is told apart', () => {
  for (const text of ['', '5', '5 m', '-5m', '1.5h', 'm', '5M', '30m1h', '5m5m', '5mm', '5min', '1e3s', '٣s'])
    assert.equal(parseDuration(text), undefined, text);
});

test('every duration is read as it was formatted', () => {
  fc.assert(
    fc.property(fc.nat({ max: 1e11 }), (ms) => {
      assert.equal(parseDuration(formatDuration(ms)), ms);
    }),
  );
});
