import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { murmur2, partitionOfKey } from './partitioner.ts';

test('murmur2 agrees with the Java client', () => {
  const known: readonly (readonly [string, number])[] = [
    ['21', -973932308],
    ['foobar', -790332482],
    ['a-little-bit-long-string', -985981536],
    ['a-little-bit-longer-string', -1486304829],
    ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
    ['abc', 479470107],
  ];
  for (const [key, hash] of known) assert.equal(murmur2(Buffer.from(key)), hash, key);
});

test('a key always has the same partition', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), fc.integer({ min: 1, max: 1000 }), (bytes, partitions) => {
      const partition = partitionOfKey(Buffer.from(bytes), partitions);
      assert.ok(Number.isInteger(partition) && partition >= 0 && partition < partitions);
      assert.equal(partitionOfKey(Buffer.from(bytes), partitions), partition);
    }),
  );
});
