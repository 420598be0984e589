import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { formatTimestamp } from './timestamp.ts';

test('an instant is written in UTC with milliseconds and a numeric offset', () => {
  assert.equal(formatTimestamp(new Date(Date.UTC(2026, 1, 20, 10, 30))), '2026-02-20T10:30:00.000+00:00');
});

test('what is written reads back as the same instant', () => {
  fc.assert(
    fc.property(fc.date({ noInvalidDate: true }), (instant) => {
      assert.equal(new Date(formatTimestamp(instant)).getTime(), instant.getTime());
    }),
  );
});
