import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorFingerprint } from './error-fingerprint.ts';

test('an order that dies in doubt keeps the fingerprint of its failures', () => {
  assert.equal(errorFingerprint('UNKNOWN: BROKER_5XX: HTTP 500'), errorFingerprint('BROKER_5XX: HTTP 500'));
  assert.notEqual(errorFingerprint('UNKNOWN: HTTP 500'), errorFingerprint('BROKER_5XX: HTTP 500'));
  assert.notEqual(errorFingerprint('UNKNOWN: lease expired'), errorFingerprint('UNKNOWN: not JSON'));
});
