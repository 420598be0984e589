import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import type { Compression, OutgoingRecord } from '../port.ts';
import { recordBytes } from '../record-bytes.ts';
import { orderKey, takeChunk, type Placed } from './record-chunks.ts';

const limits = { records: 5, bytes: 1000 } as const;

type Shape = Readonly<{ size: number; key: string | null; compression: Compression | 'unknown' }>;

const shape = (compressions: readonly Shape['compression'][]): fc.Arbitrary<Shape> =>
  fc.record({
    size: fc.integer({ min: 0, max: 1500 }),
    key: fc.option(fc.constantFrom('a', 'b', 'c')),
    compression: fc.constantFrom(...compressions),
  });

const placed = ({ size, key, compression }: Shape, index: number): Placed => ({
  index,
  record: {
    topic: 't',
    key: key === null ? null : Buffer.from(key),
    value: Buffer.alloc(size),
    headers: [],
    compression,
  },
});

const bytesOf = (chunk: readonly Placed[]): number =>
  chunk.reduce((sum, { record }) => sum + recordBytes(record), 0);

function chunksOf(records: readonly Placed[]): readonly (readonly Placed[])[] {
  const chunks: (readonly Placed[])[] = [];
  for (let waiting = records; waiting.length > 0;) {
    const taken = takeChunk(waiting, limits);
    chunks.push(taken.chunk);
    waiting = taken.rest;
  }
  return chunks;
}

test('chunks keep all records in order within the limits, and only a record that is too large alone exceeds them', () => {
  fc.assert(
    fc.property(fc.array(shape(['none', 'unknown']), { maxLength: 50 }), (shapes) => {
      const chunks = chunksOf(shapes.map(placed));
      assert.deepEqual(
        chunks.flat().map(({ index }) => index),
        shapes.map((_, index) => index),
      );
      for (const [at, chunk] of chunks.entries()) {
        assert.ok(chunk.length >= 1 && chunk.length <= limits.records);
        assert.ok(bytesOf(chunk) <= limits.bytes || chunk.length === 1);
        const next = chunks[at + 1]?.[0];
        const isFull = !next || chunk.length === limits.records || bytesOf([...chunk, next]) > limits.bytes;
        assert.ok(isFull, 'a chunk takes what it can');
      }
    }),
  );
});

test('a chunk has one codec, and no record overtakes another one of its key', () => {
  fc.assert(
    fc.property(fc.array(shape(['none', 'unknown', 'gzip', 'zstd']), { maxLength: 50 }), (shapes) => {
      const chunks = chunksOf(shapes.map(placed));
      for (const chunk of chunks)
        assert.equal(new Set(chunk.map(({ record }) => codec(record))).size, 1, 'one codec');
      const sent = chunks.flat();
      assert.equal(sent.length, shapes.length);
      for (const key of ['a', 'b', 'c']) {
        const ofKey = sent.filter(({ record }) => orderKey(record) === key).map(({ index }) => index);
        assert.deepEqual(
          ofKey,
          ofKey.toSorted((a, b) => a - b),
        );
      }
    }),
  );
});

const codec = ({ compression }: OutgoingRecord): string | undefined =>
  compression === 'unknown' ? 'none' : compression;

test('alternating records of two codecs, each with its own key, make two chunks', () => {
  const compression = (at: number): Compression => (at % 2 === 0 ? 'none' : 'lz4');
  const records = Array.from({ length: 10 }, (_, at) =>
    placed({ size: 1, key: `k${at}`, compression: compression(at) }, at),
  );
  assert.equal(chunksOf(records).length, 2);
});

test('the size of a record includes its key and headers', () => {
  const header = { key: Buffer.alloc(100), value: Buffer.alloc(200) };
  const record = {
    topic: 't',
    key: Buffer.alloc(50),
    value: null,
    headers: [header, { ...header, value: null }],
  };
  assert.ok(recordBytes(record) >= 450);
});
