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
    template: 'customer <n> is locked',
    frame: 'com.acme.Orders.store',
  });
  assert.deepEqual(
    createFingerprinter()({ errorClass: undefined, errorMessage: 'x', errorStack: undefined }).basis,
    {
      class: null,
      template: 'x',
      frame: null,
    },
  );
});

// Stored fingerprints must stay comparable: a change of this value calls for a new version.
test('version 2 has not changed', () => {
  assert.equal(fingerprintOf(), 'v2:9fe6fdc8352082629d718671a9e16b15');
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
        /^v2:[\da-f]{32}$/,
      );
    }),
  );
});

test('a class before the message is the class', () => {
  for (const errorMessage of ['TimeoutError: no answer', 'acme.orders.TimeoutError: no answer'])
    assert.equal(
      createFingerprinter()({ errorClass: undefined, errorMessage, errorStack: undefined }).basis.template,
      'no answer',
    );
  assert.equal(fingerprintOf({ errorMessage: `${error.errorClass}: customer 1 is locked` }), fingerprintOf());
});

test('takes linear time for lines of a megabyte', () => {
  const print = createFingerprinter();
  const pieces = ['"', "'", '(', '{"', 'A{a=', '<', 'a.', 'at ', 'Caused by: ', '1', ' ', '\n', '\n\t', 'A'];
  const started = performance.now();
  for (const piece of pieces) {
    const text = piece.repeat(1_000_000 / piece.length);
    for (const errorClass of [undefined, text]) print({ errorClass, errorMessage: text, errorStack: text });
  }
  assert.ok(performance.now() - started < 3000);
});

test('numbers, ids, addresses and times in message and stack do not change the fingerprint', () => {
  const values = fc.record({
    n: fc.nat(),
    id: fc.uuid(),
    ip: fc.ipV4(),
    at: fc.date({ noInvalidDate: true, min: new Date(0), max: new Date(4e12) }),
    line: fc.integer({ min: 1, max: 99_999 }),
  });
  const failureOf = ({ n, id, ip, at, line }: typeof values extends fc.Arbitrary<infer T> ? T : never) => {
    const root = `order ${n} (${id}) on ${ip}:9092 at ${at.toISOString()} is locked`;
    return {
      errorClass: 'x.Wrapper',
      errorMessage: `listener ${n} failed`,
      errorStack: `x.Wrapper: listener ${n} failed\n\tat org.apache.A.b(A.java:${line})\nCaused by: x.Locked: ${root}\n\tat com.acme.Orders.lambda$store$${n}(Orders.java:${line})`,
    };
  };
  const { fingerprint } = createFingerprinter()(
    failureOf({
      n: 1,
      id: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
      ip: '10.0.0.1',
      at: new Date(1e12),
      line: 1,
    }),
  );
  fc.assert(
    fc.property(values, (one) => {
      assert.equal(createFingerprinter()(failureOf(one)).fingerprint, fingerprint);
    }),
  );
});
