import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fingerprintOf } from './fingerprint.ts';
import { fingerprintOfText } from './text-fingerprint.ts';

test('codes and the status of an answer tell causes apart, other numbers do not', () => {
  const same = ['BAD_REQUEST: HTTP 404: no order 17', 'BAD_REQUEST: HTTP 404: no order 18'];
  assert.equal(new Set(same.map(fingerprintOfText)).size, 1);
  const different = [
    'BAD_REQUEST: HTTP 404: no order 17',
    'BAD_REQUEST: HTTP 400: no order 17',
    'UNAUTHORIZED: HTTP 404: no order 17',
    'HTTP 404: no order 17',
    'HTTP 404, not JSON: no order 17',
    'no order 17',
  ];
  assert.equal(new Set(different.map(fingerprintOfText)).size, different.length);
});

test('a text without a code has the fingerprint of its message', () => {
  for (const errorMessage of ['', 'no order 17', 'TimeoutError: no answer after 3000 ms', 'HTTP 4044 orders'])
    assert.equal(
      fingerprintOfText(errorMessage),
      fingerprintOf({ errorClass: undefined, errorMessage, errorStack: undefined }),
    );
});

test('a hostile text takes no more time than another', () => {
  const started = performance.now();
  for (const piece of ['A', 'AAAA: ', 'HTTP ', 'HTTP 404: ', 'A_1: '])
    fingerprintOfText(piece.repeat(200_000));
  assert.ok(performance.now() - started < 1000);
});
