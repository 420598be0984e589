import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { backoffMs, retryAfterMs } from './backoff.ts';

const backoff = { initialMs: 1000, maxMs: 60_000, jitter: 0.1 };
const now = new Date('2026-02-20T10:30:00Z');

test('the wait doubles with each failure until its cap', () => {
  const waits = [1, 2, 3, 4, 7, 100].map((failures) => backoffMs(backoff, failures, () => 0.5));
  assert.deepEqual(waits, [1000, 2000, 4000, 8000, 60_000, 60_000]);
});

test('jitter stays within its share to both sides, whatever the failure count', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: -5, max: 5000 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (n, random) => {
        const middle = backoffMs(backoff, n, () => 0.5);
        const wait = backoffMs(backoff, n, () => random);
        assert.ok(wait >= middle * 0.899 && wait <= middle * 1.101);
      },
    ),
  );
});

test('Retry-After is read as seconds and as an HTTP date', () => {
  assert.equal(retryAfterMs('120', now, 3_600_000), 120_000);
  assert.equal(retryAfterMs('Fri, 20 Feb 2026 10:31:00 GMT', now, 3_600_000), 60_000);
  assert.equal(retryAfterMs('Fri, 20 Feb 2026 10:29:00 GMT', now, 3_600_000), 0);
  assert.equal(retryAfterMs('999999999', now, 3_600_000), 3_600_000);
});

test('a Retry-After of any number of digits is capped', () => {
  for (const digits of [10, 11, 20, 309, 5000])
    assert.equal(retryAfterMs('9'.repeat(digits), now, 3_600_000), 3_600_000, `${digits} digits`);
  assert.equal(retryAfterMs(`${'0'.repeat(20)}7`, now, 3_600_000), 7000);
});

test('what is no Retry-After is undefined and never throws', () => {
  for (const text of [undefined, '', 'soon', '-5', '1.5', '2026-02-20', 'Friday!']) {
    assert.equal(retryAfterMs(text, now, 1000), undefined, String(text));
  }
  fc.assert(
    fc.property(fc.string(), (text) => {
      const wait = retryAfterMs(text, now, 1000);
      assert.ok(wait === undefined || (wait >= 0 && wait <= 1000));
    }),
  );
});
