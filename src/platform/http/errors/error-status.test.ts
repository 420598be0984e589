import assert from 'node:assert/strict';
import { test } from 'node:test';
import { errorCode, statusOf } from './error-status.ts';

test('every kind of error has its status', () => {
  assert.deepEqual(
    (
      [
        'validation',
        'unauthenticated',
        'forbidden',
        'not_found',
        'conflict',
        'too_large',
        'semantic',
        'rate_limited',
        'internal',
        'unavailable',
      ] as const
    ).map(statusOf),
    [400, 401, 403, 404, 409, 413, 422, 429, 500, 503],
  );
});

test('a code has the slice and the error name', () => {
  assert.equal(errorCode('dlq', 413), 'SYS_DLQ_TOO_LARGE');
  assert.equal(errorCode('dlq', 400), 'SYS_DLQ_VALIDATION_ERROR');
  assert.equal(errorCode('http', 405), 'SYS_HTTP_METHOD_NOT_ALLOWED');
  assert.equal(errorCode('http', 418), 'SYS_HTTP_BAD_REQUEST');
  assert.equal(errorCode('http', 502), 'SYS_HTTP_INTERNAL_ERROR');
});
