import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { bigInteger, decimal, int32, int32OrDecimal, int64, int64OrDecimal } from './codecs.ts';

const bytes = (hex: string): Buffer => Buffer.from(hex, 'hex');

test('a Java int is four bytes, big-endian', () => {
  assert.equal(int32(bytes('00000003')), 3n);
  assert.equal(int32(bytes('ffffffff')), -1n);
  assert.equal(int32(bytes('7fffffff')), 2_147_483_647n);
});

test('a Java long is eight bytes, big-endian, without loss of precision', () => {
  assert.equal(int64(bytes('0123456789abcdef')), 81_985_529_216_486_895n);
  assert.equal(int64(bytes('ffffffffffffffff')), -1n);
});

test('a BigInteger has as few bytes as possible', () => {
  assert.equal(bigInteger(bytes('019c7a9968bb')), 1_771_583_400_123n);
  assert.equal(bigInteger(bytes('00')), 0n);
  assert.equal(bigInteger(bytes('ff')), -1n);
  assert.equal(bigInteger(bytes('0080')), 128n);
  assert.equal(bigInteger(bytes('80')), -128n);
});

test('a BigInteger of eight bytes equals a long of the same bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 8, maxLength: 8 }), (array) => {
      assert.equal(bigInteger(Buffer.from(array)), int64(Buffer.from(array)));
    }),
  );
});

test('bytes of any other length are not a number', () => {
  for (const length of [0, 1, 3, 5, 8]) assert.equal(int32(Buffer.alloc(length)), undefined);
  for (const length of [0, 4, 7, 9]) assert.equal(int64(Buffer.alloc(length)), undefined);
  for (const length of [0, 9, 1000]) assert.equal(bigInteger(Buffer.alloc(length)), undefined);
});

test('a decimal has a sign at most, digits, and no more than a long needs', () => {
  assert.equal(decimal(Buffer.from('42')), 42n);
  assert.equal(decimal(Buffer.from('-1')), -1n);
  assert.equal(decimal(Buffer.from('9223372036854775807')), 2n ** 63n - 1n);
  for (const text of ['', '-', ' 1', '1 ', '+1', '1.0', '1e3', '0x1', '1\n', '٣', '1'.repeat(21)])
    assert.equal(decimal(Buffer.from(text)), undefined, text);
});

test('where both are possible, digits are decimal and other bytes binary', () => {
  assert.equal(int32OrDecimal(Buffer.from('1234')), 1234n);
  assert.equal(int32OrDecimal(bytes('00000003')), 3n);
  assert.equal(int64OrDecimal(Buffer.from('12345678')), 12_345_678n);
  assert.equal(int64OrDecimal(bytes('0123456789abcdef')), 81_985_529_216_486_895n);
  assert.equal(int64OrDecimal(bytes('0102')), undefined);
});
