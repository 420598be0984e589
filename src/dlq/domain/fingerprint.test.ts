import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { createFingerprinter, type FingerprintedError } from './fingerprint.ts';

const error: FingerprintedError = {
  errorClass: 'java.lang.IllegalStateException',
  errorMessage: 'customer 4711 is locked',
  errorStack:
    'java.lang.IllegalStateException: customer 4711 is locked\n\tat com.acme.Orders.store(Orders.java:42)',
};

const fingerprintOf = (changes: Partial<FingerprintedError> = {}): string =>
  createFingerprinter()({ ...error, ...changes }).fingerprint;

test('the basis shows why a message was grouped', () => {
  assert.deepEqual(createFingerprinter()(error).basis, {
    class: 'java.lang.IllegalStateException',
    message: 'customer <n> is locked',
    frame: 'com.acme.Orders.store',
  });
  assert.deepEqual(
    createFingerprinter()({ errorClass: undefined, errorMessage: 'x', errorStack: undefined }).basis,
    {
      class: null,
      message: 'x',
      frame: null,
    },
  );
});

// Stored fingerprints must stay comparable: a change of this value calls for a new version.
test('version 1 has not changed', () => {
  assert.equal(fingerprintOf(), 'v1:a75b1c88ab4beae9c08917525c8ab898');
});

test('variable parts and line numbers do not change the fingerprint', () => {
  const errorStack = error.errorStack?.replaceAll('4711', '9').replace(':42)', ':77)');
  assert.equal(fingerprintOf({ errorMessage: 'customer 9 is locked', errorStack }), fingerprintOf());
});

test('class, message and frame each change the fingerprint', () => {
  const all = [
    fingerprintOf(),
    fingerprintOf({ errorClass: 'java.lang.IllegalArgumentException' }),
    fingerprintOf({ errorClass: undefined }),
    fingerprintOf({ errorMessage: 'customer 4711 is gone' }),
    fingerprintOf({ errorStack: '\tat com.acme.Orders.load(Orders.java:42)' }),
    fingerprintOf({ errorStack: undefined }),
  ];
  assert.equal(new Set(all).size, all.length);
});

test('the cache never changes the result', () => {
  const anyError = fc.record({
    errorClass: fc.option(fc.string(), { nil: undefined }),
    errorMessage: fc.string(),
    errorStack: fc.option(fc.string(), { nil: undefined }),
  });
  const old = createFingerprinter();
  for (let number = 0; number < 3000; number += 1) old({ ...error, errorClass: `Class${number}` });
  fc.assert(
    fc.property(fc.array(anyError), (errors) => {
      for (const one of errors) assert.deepEqual(old(one), createFingerprinter()(one));
    }),
  );
});

test('the cache has a maximum size', () => {
  const print = createFingerprinter();
  const first = print(error);
  assert.equal(print({ ...error, errorMessage: 'customer 1 is locked' }), first);
  for (let number = 0; number < 1024; number += 1) print({ ...error, errorClass: `Class${number}` });
  assert.notEqual(print(error), first);
  assert.deepEqual(print(error), first);
});

test('a fingerprint is the version and 16 bytes in hex, whatever the error', () => {
  const print = createFingerprinter();
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (errorMessage, errorStack) => {
      assert.match(
        print({ errorClass: errorStack, errorMessage, errorStack }).fingerprint,
        /^v1:[\da-f]{32}$/,
      );
    }),
  );
});
